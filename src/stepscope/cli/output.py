"""Text and tables for the terminal, for spreadsheets and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl
from rich.console import Console
from rich.text import Text

from stepscope import present
from stepscope.cli.layout import TextColumn, lay_out, lay_out_whole
from stepscope.cli.notes import WIDTH, wrapped
from stepscope.cli.options import Format
from stepscope.pages.csv_text import csv_text
from stepscope.references import as_typed
from stepscope.tables.base import Column

if TYPE_CHECKING:
    from stepscope.pages.shown_table import ShownTable

ALWAYS = 2
"""The most important columns of a table, which never go."""

KEYS = ("rank", "step", "stage", "source", "destination", "rank_a", "rank_b", "device", "stream", "name")
"""Columns that never go either, where they tell rows apart, in the order in which they are tried."""

BAR_NARROW, BAR_WIDE, BAR_ROOM = 8, 16, 100
"""Cells of the longest bar, and from how many cells of a line on it is the longer one."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BLOCKS = {"·": ".", "░": ":", "▒": "+", "▓": "*", "█": "#"}
_IN_ASCII = str.maketrans({"─": "-", "…": "~", **_BLOCKS})
_SAID_IN_ASCII = str.maketrans({"…": "...", **_BLOCKS})

_COLOURS = {"·": "dim", "░": "green", "▒": "yellow", "▓": "red", "█": "bright_red"}
"""Blocks of a drawn column and their colours."""

PATHS = ("input", "file", "path")
"""Columns whose end tells one value from the next."""

PRINTED_ROWS = 50_000
"""Rows of which the text is in memory at a time."""


class Output(Console):
    """Standard output. Names in what is printed are never taken for markup, and a closed pipe is an error.

    If `wide`, tables have all their columns and whole names, however wide they become. If `aside`, this is
    standard error.
    """

    def __init__(self, *, wide: bool = False, aside: bool = False) -> None:
        super().__init__(stderr=aside, markup=False, emoji=False, highlight=False)
        self._wide = wide

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command line's `main`."""
        raise BrokenPipeError

    @property
    def room(self) -> int | None:
        """Width of a line in cells; None if it may be as long as it needs: in files and pipes."""
        return self.width if self.file.isatty() else None

    def say(self, text: str, style: str | None = None, *, indent: int = 0) -> None:
        """Print a sentence, wrapped between words in a terminal; lines after the first begin with `indent` spaces."""
        text = present.printable(as_typed(text))
        if self.room is not None:
            text = wrapped(text, max(min(self.room, WIDTH), indent + 20), indent)
        self.print(text if self._draws else text.translate(_SAID_IN_ASCII), style=style, soft_wrap=True)

    def table(self, shown: ShownTable) -> None:
        """Print a table: a row is a line, and a narrow terminal shows the most important columns.

        A table without rows is only its heading.
        """
        if shown.rows.is_empty():
            self.say(shown.heading, "bold")
            return
        places = _order_of_leaving(shown.columns) | dict.fromkeys(_keys(shown.rows))
        units = shown.rows[shown.named_by].to_list() if shown.named_by else []
        columns = [
            _text_column(shown.rows, column.name, column.title, places[column.name], units) for column in shown.columns
        ]
        if shown.drawn:
            place = shown.rows.columns.index(shown.drawn)
            columns[place] = replace(columns[place], cut=None, expendable=None)
        if shown.bar and self.room is not None:
            values = shown.rows[shown.bar].to_list()
            columns.insert(shown.rows.columns.index(shown.bar) + 1, self._bars(values, len(columns)))
        self._print(columns, shown.heading, whole=False, drawn=bool(shown.drawn))

    def raw_table(self, frame: pl.DataFrame, heading: str = "", *, whole: bool = False) -> None:
        """Print a frame with its names and values as they are; all columns stay.

        If it is too wide, texts are folded if they must stay `whole`, else cut.
        """
        self._print([_text_column(frame, name) for name in frame.columns], heading, whole=whole)

    def _print(self, columns: list[TextColumn], heading: str, *, whole: bool, drawn: bool = False) -> None:
        room = None if self._wide else self.room
        laid = (lay_out_whole if whole or self._wide else lay_out)(columns, room)
        if heading:
            self.say(heading, "bold")
        for line in laid.header:
            self._line(line, "bold")
        if laid.rule:
            self._line(laid.rule, "dim")
        if laid.body:
            self._line("\n".join(laid.body), drawn=drawn)
        dropped = [title for title in laid.dropped if title]
        if dropped:
            self.say(f"… {', '.join(dropped)}: shown with --wide", "dim")

    def _bars(self, values: list[float | None], place: int) -> TextColumn:
        width = BAR_WIDE if (self.room or WIDTH) >= BAR_ROOM else BAR_NARROW
        return TextColumn("", bars(values, width, blocks=self._draws), expendable=place)

    @property
    def _draws(self) -> bool:
        """Whether the terminal's encoding has more than ASCII."""
        return self.encoding.startswith("utf")

    def _line(self, text: str, style: str | None = None, *, drawn: bool = False) -> None:
        text = text if self._draws else text.translate(_IN_ASCII)
        if not (drawn and self._draws and self.color_system):
            self.out(text, style=style, highlight=False)
            return
        coloured = Text(text)
        for block, colour in _COLOURS.items():
            coloured.highlight_regex(f"{block}+", colour)
        self.print(coloured, soft_wrap=True)


def _order_of_leaving(columns: Sequence[Column]) -> dict[str, int | None]:
    """How soon each column may go, 0 first: the least important, of equal ones the rightmost; None if it stays."""
    places = {column.name: place for place, column in enumerate(columns)}
    leaving = sorted(columns, key=lambda column: (column.importance, -places[column.name]))[:-ALWAYS]
    order = {column.name: number for number, column in enumerate(leaving)}
    return {name: order.get(name) for name in places}


def _keys(rows: pl.DataFrame) -> list[str]:
    """The columns of `KEYS` that tell rows apart; the rank in any case, as rows that are not shown have other ranks."""
    found, distinct = list[str](), 1
    for name in KEYS:
        if name in rows.columns and ((count := rows.select(*found, name).n_unique()) > distinct or name == "rank"):
            found, distinct = [*found, name], count
    return found


def _text_column(
    frame: pl.DataFrame, name: str, title: str = "", leaves: int | None = None, units: Sequence[str] = ()
) -> TextColumn:
    """A column as text: with its unit under a title, else raw under its name.

    Args:
        units: Of each row the name that has the unit of its fractions.
    """
    dtype = frame.schema[name]
    values = frame[name].to_list()
    names = units if units and dtype.is_float() else [name] * len(values)
    if title:
        texts = [present.cell(each, value) for each, value in zip(names, values, strict=True)]
    else:
        texts = ["" if value is None else str(value) for value in values]
    is_text = dtype == pl.String or dtype.is_nested()
    return TextColumn(
        present.printable(title or name),
        [present.printable(text) for text in texts],
        right=dtype.is_numeric(),
        cut=None if not is_text else "start" if name in PATHS else "end",
        expendable=leaves,
    )


def print_frame(frame: pl.DataFrame, form: Format, *, wide: bool = False) -> None:
    """Print any frame in the asked form, with its own column names and whole values."""
    if form == "table":
        out = Output(wide=wide)
        if frame.is_empty() and out.room is not None:
            out.say("0 rows")
        else:
            out.raw_table(frame, whole=True)
        return
    if form == "csv":
        _print_parts(csv_text(rows, header=not start) for start, rows in _parts(frame))
    else:
        rows_of_parts = (rows.write_json()[1:-1] for _, rows in _parts(frame))
        _print_parts(chain("[", _separated(rows_of_parts, ","), "]\n"))


def print_document(found: dict[str, Any]) -> None:
    """Print an object as JSON, which has no NaN and no infinity; frames in it become lists of rows."""
    _print_parts(chain(_as_json(found), "\n"))


def _print_parts(texts: Iterable[str]) -> None:
    """Print a text of which only a part is in memory: what a program reads as it is; a terminal must not obey it."""
    for text in texts:
        sys.stdout.write(present.printable(text, keep="\n") if sys.stdout.isatty() else text)


def _parts(frame: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of a frame, not too many at a time, each with the number of its first row; at least one frame."""
    for start in range(0, max(frame.height, 1), PRINTED_ROWS):
        yield start, frame.slice(start, PRINTED_ROWS)


def _as_json(found: Any) -> Iterator[str]:
    """A value as JSON, in parts."""
    from stepscope.pages.answering import plain_rows

    if isinstance(found, pl.DataFrame):
        rows_of_parts = (_json(plain_rows(rows))[1:-1] for _, rows in _parts(found))
        yield from chain("[", _separated(rows_of_parts, ", "), "]")
    elif isinstance(found, dict):
        members = (chain([_json(key), ": "], _as_json(value)) for key, value in found.items())
        yield "{"
        for number, member in enumerate(members):
            yield from chain([", "] if number else [], member)
        yield "}"
    else:
        yield _json(found)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _separated(texts: Iterable[str], separator: str) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield separator + text if number else text


def bars(values: Sequence[float | None], width: int, *, blocks: bool = True) -> list[str]:
    """A bar for each value, none of them negative, the longest `width` cells long; nothing for what is unknown.

    `blocks` draws eighths of a cell; otherwise whole ones are drawn, in ASCII.

    Examples:
        >>> bars([4, 2, None, 0.1], 4, blocks=False)
        ['####', '##', '', '#']
    """
    longest = max((value for value in values if value is not None), default=0)
    return [_bar(value / longest * width, blocks=blocks) if value and longest > 0 else "" for value in values]


def _bar(cells: float, *, blocks: bool) -> str:
    if not blocks:
        return "#" * max(round(cells), 1)
    eighths = max(round(cells * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
