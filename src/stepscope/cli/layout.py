"""Fitting a table of texts to a width: names are cut first, then columns go; figures are never cut."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len, chop_cells, set_cell_size

from stepscope.tables.operators import PLACE

GAP = 2
"""Spaces between columns."""

Cut = Literal["end", "start"]

ENOUGH: dict[Cut, int] = {"end": 24, "start": 48}
"""Names, and paths, are not cut below this as long as a column may go instead."""

LEAST = 10
"""They are never cut below this; rows become records before."""


_IS_PLACE = re.compile(PLACE)
"""Operators that are named by their place in the model differ in the end of their names."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column as text.

    Args:
        right: Flush right.
        cut: Where a long value loses characters; None if it must not.
        expendable: How soon the column may go, 0 first; None if it stays.
    """

    title: str
    cells: list[str]
    right: bool = False
    cut: Cut | None = None
    expendable: int | None = None

    @property
    def natural(self) -> int:
        """Width that shows all values whole; the title may take several lines."""
        return max([self.word, *map(cell_len, self.cells)])

    @property
    def word(self) -> int:
        """Width of the longest word of the title, which is never cut."""
        return max(map(cell_len, self.title.split()), default=0)


@dataclass(frozen=True)
class Laid:
    """A table that fits.

    Args:
        header: Lines of the titles; none where rows became records.
        rule: Line under them.
        body: Lines of the rows.
        dropped: Titles of the columns that had to go.
    """

    header: list[str]
    rule: str
    body: list[str]
    dropped: list[str]


def lay_out(columns: list[TextColumn], width: int | None) -> Laid:
    """Lay a table out within `width` cells (None: as wide as it needs, so that programs and files get whole names).

    Where not even the columns that must stay fit, each row becomes a record with one line a value.
    """
    if width is None:
        return _table(columns, [c.natural for c in columns], [])
    leaving = sorted((c for c in columns if c.expendable is not None), key=lambda c: c.expendable or 0)
    dropped, least = list[TextColumn](), ENOUGH
    while (widths := _fit(_without(columns, dropped), width, least)) is None:
        if len(dropped) < len(leaving):
            dropped.append(leaving[len(dropped)])
        elif least is ENOUGH:
            least = dict.fromkeys(ENOUGH, LEAST)
        else:
            return records(columns)
    for back in reversed(dropped):  # narrower than those that had to go after them
        fewer = [column for column in dropped if column is not back]
        if (fitting := _fit(_without(columns, fewer), width, ENOUGH)) is not None:
            dropped, widths = fewer, fitting
    return _table(_without(columns, dropped), widths, [c.title for c in columns if c in dropped])


def _without(columns: list[TextColumn], dropped: list[TextColumn]) -> list[TextColumn]:
    return [column for column in columns if column not in dropped]


def lay_out_whole(columns: list[TextColumn], width: int | None) -> Laid:
    """Lay a table out without losing a character: long texts are folded, or rows become records."""
    if width is None:
        return _table(columns, [c.natural for c in columns], [])
    widths = _fit(columns, width, dict.fromkeys(ENOUGH, ENOUGH["end"]))
    if widths is None:
        return records(columns)
    parts = [[chop_cells(cell, w) or [""] for cell in c.cells] for c, w in zip(columns, widths, strict=True)]
    folded: list[list[str]] = [[] for _ in columns]
    for row in zip(*parts, strict=True):
        height = max(map(len, row), default=1)
        for cells, lines in zip(folded, row, strict=True):
            cells.extend([*lines, *[""] * (height - len(lines))])
    return _table([replace(c, cells=cells) for c, cells in zip(columns, folded, strict=True)], widths, [])


def records(columns: list[TextColumn]) -> Laid:
    """Each row as lines of `title  value`, rows parted by an empty line."""
    titles = max((cell_len(c.title) for c in columns), default=0)
    body: list[str] = []
    for row in zip(*(c.cells for c in columns), strict=True):
        body.extend(f"{_pad(c.title, titles)}  {cell}".rstrip() for c, cell in zip(columns, row, strict=True))
        body.append("")
    return Laid([], "", body[:-1], [])


def _fit(columns: list[TextColumn], width: int, least: Mapping[Cut, int]) -> list[int] | None:
    """A width for each column, names not below `least`; None if they do not fit."""
    widths = [c.natural for c in columns]
    floors = [w if c.cut is None else min(w, max(least[c.cut], c.word)) for c, w in zip(columns, widths, strict=True)]
    excess = sum(widths) + GAP * (len(columns) - 1) - width
    while excess > 0:
        spare = [n for n in range(len(columns)) if widths[n] > floors[n]]
        if not spare:
            return None
        widths[max(spare, key=lambda n: widths[n])] -= 1
        excess -= 1
    return widths


def _table(columns: list[TextColumn], widths: list[int], dropped: list[str]) -> Laid:
    titles = [_wrap(c.title, w) for c, w in zip(columns, widths, strict=True)]
    height = max(map(len, titles), default=0)
    titles = [[""] * (height - len(lines)) + lines for lines in titles]
    right = [c.right for c in columns]
    cells = [_cut_apart(c, w) for c, w in zip(columns, widths, strict=True)]
    header = [_line(row, widths, right) for row in zip(*titles, strict=True)]
    body = [_line(row, widths, right) for row in zip(*cells, strict=True)]
    return Laid(header, "─" * (sum(widths) + GAP * max(len(widths) - 1, 0)), body, dropped)


def _line(cells: tuple[str, ...], widths: list[int], right: list[bool]) -> str:
    padded = (_pad(cell, w, right=r) for cell, w, r in zip(cells, widths, right, strict=True))
    return (" " * GAP).join(padded).rstrip()


def _pad(text: str, width: int, *, right: bool = False) -> str:
    spaces = " " * (width - cell_len(text))
    return spaces + text if right else text + spaces


def _cut_apart(column: TextColumn, width: int) -> list[str]:
    """The values of a column within a width; those that would read the same keep their ends, or where they differ."""
    short = {text: _cut(text, width, column.cut) for text in column.cells}
    for again in (_with_ends, _from_difference):
        alike = defaultdict[str, list[str]](list)
        for text, cut in short.items():
            alike[cut].append(text)
        for texts in alike.values():
            short |= again(texts, width) if len(texts) > 1 else {}
    return [short[text] for text in column.cells]


def _with_ends(texts: list[str], width: int) -> dict[str, str]:
    end = (width - 1) * 2 // 3
    start = width - 1 - end
    return {text: f"{set_cell_size(text, start).rstrip()}…{set_cell_size(text[::-1], end)[::-1]}" for text in texts}


def _from_difference(texts: list[str], width: int) -> dict[str, str]:
    first = next(
        (place for place, signs in enumerate(zip(min(texts), max(texts), strict=False)) if len({*signs}) > 1), 0
    )
    return {text: "…" + _cut(text[first:], width - 1, "end") for text in texts}


def _cut(text: str, width: int, where: Cut | None) -> str:
    """Text within `width` cells, an ellipsis for what is lost."""
    if where is None or cell_len(text) <= width:
        return text
    if where == "start" or _IS_PLACE.search(text):
        return "…" + set_cell_size(text[::-1], width - 1)[::-1].lstrip()
    return set_cell_size(text, width - 1).rstrip() + "…"


def _wrap(title: str, width: int) -> list[str]:
    """A title in lines of at most `width` cells, broken between words."""
    lines: list[str] = []
    for word in title.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += " " + word
        elif cell_len(word) <= width:
            lines.append(word)
        else:
            lines.append(_cut(word, width, "end"))
    return lines
