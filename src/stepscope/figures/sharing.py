"""Many ranks or steps along an axis: several that follow one another share a row or column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.selection import describe_numbers
from stepscope.texts import Text

MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 160, 160, 9000
"""Rows, columns and cells of a map; of more ranks or steps, several that follow one another share a cell."""

NAMED = 40
"""Ticks of an axis that have room beside one another; of more places, every other one or fewer has a name."""

SLOW = "#D55E00"
"""Colour of the name of what is slow, on light and dark pages."""


@dataclass(frozen=True)
class Shared:
    """Numbers in order, as many at each place of an axis.

    Args:
        numbers: E.g. ranks, each once, in order.
        each: How many share a place.
    """

    numbers: Sequence[int]
    each: int

    @cached_property
    def names(self) -> list[str]:
        """What stands at each place, e.g. `4-7`."""
        return [describe_numbers(some) for some in self.members]

    @cached_property
    def members(self) -> list[Sequence[int]]:
        """The numbers at each place."""
        return [self.numbers[start : start + self.each] for start in range(0, len(self.numbers), self.each)]

    def place(self, of: str) -> pl.Expr:
        """The place of a column's numbers, from 0."""
        places = [number // self.each for number in range(len(self.numbers))]
        return pl.col(of).replace_strict(list(self.numbers), places, return_dtype=pl.Int32)

    def name(self, of: str) -> pl.Expr:
        """What stands at the places of a column."""
        return pl.col(of).replace_strict(range(len(self.names)), self.names, return_dtype=pl.String)


def shared(numbers: Iterable[int], most: int) -> Shared:
    """Numbers on at most so many places."""
    known = sorted({*numbers})
    return Shared(known, -(-len(known) // max(most, 1)) or 1)


def cells(ranks: Iterable[int], steps: Iterable[int]) -> tuple[Shared, Shared]:
    """Rows of ranks and columns of steps, no more than a map may have."""
    rows = shared(ranks, MOST_ROWS)
    most = min(MOST_COLUMNS, MOST_CELLS // max(len(rows.names), 1))
    return rows, shared(steps, most)


def sharing_note(rows: Shared, columns: Shared, shown: Text) -> list[Text]:
    """That cells are shared, and which of those that share one is shown; nothing if none is.

    Args:
        shown: E.g. `the slowest` of them.
    """
    english, chinese, places, places_zh = [], [], [], []
    for one, what, what_zh, place, place_zh in (
        (rows, "ranks", "个 rank", "rows", "行"),
        (columns, "steps", "步", "columns", "列"),
    ):
        if one.each > 1:
            english.append(f"{len(one.numbers)} {what}")
            chinese.append(f"{len(one.numbers)} {what_zh}")
            places.append(f"{len(one.names)} {place}")
            places_zh.append(f"{len(one.names)} {place_zh}")
    if not english:
        return []
    return [
        Text(
            f"{' and '.join(english)} share {' and '.join(places)}: a cell shows {shown.en} of those that share it.",
            f"{'和 '.join(chinese)}合并为 {'、'.join(places_zh)}：每格显示其中{shown.zh}。",
        )
    ]


def some_ticks(names: Sequence[str], marked: Collection[int] = (), most: int = NAMED) -> dict[str, Any]:
    """An axis on which marks stand at 0, 1, 2... and as many have names as there is room for, those marked always.

    Args:
        names: Texts that are safe to show, by place.
        marked: Places whose names stand out.
    """
    every = -(-len(names) // most) or 1
    apart = {place for mark in marked for place in range(mark - every + 1, mark + every)} if every > 1 else set()
    places = sorted({*(place for place in range(0, len(names), every) if place not in apart), *marked})
    texts = [f'<span style="color:{SLOW}"><b>{names[at]} ◀</b></span>' if at in marked else names[at] for at in places]
    return {"tickmode": "array", "tickvals": places, "ticktext": texts}
