"""Ranges on lanes: on one lane of a viewer, ranges must follow one another or lie within one another."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.sources.native import lanes as compiled
from stepscope.sources.native.library import Refused

MOST_DEEP = 250
"""Ranges within one another on a lane; Perfetto's trace processor drops those from 256 levels on."""

_OPEN = {"track": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64, "lane": pl.Int64}
_ORDER, _DESCENDING = ("track", "start_ns", "end_ns"), (False, False, True)
"""By start, and of equal starts the longer first."""


class Lanes:
    """Gives each range a lane of its track, so that a viewer can draw all of them.

    Ranges come in windows of time: each window has all that start in it, and no window starts before the last one
    ended. What is still open at the end of a window is remembered, so memory does not grow with the recording.
    """

    def __init__(self) -> None:
        self._open = pl.DataFrame(schema=_OPEN)

    def place(self, rows: pl.DataFrame, end_ns: int | None = None) -> pl.DataFrame:
        """The ranges of a window, each with its lane.

        Args:
            rows: `track` (numbers from 0 on), `start_ns`, `end_ns` (not before the start) and any other columns.
            end_ns: Where the next window starts; None for the last one.

        Returns:
            The rows with `lane` (from 0), by track, start and, of equal starts, the longer one first.

        Examples:
            >>> ends = {"track": [0] * 4, "start_ns": [0, 2, 3, 12], "end_ns": [10, 12, 4, 15]}
            >>> Lanes().place(pl.DataFrame(ends))["lane"].to_list()
            [0, 1, 0, 0]
        """
        rows = rows.sort(*_ORDER, descending=_DESCENDING, maintain_order=True)
        everything = pl.concat([self._open, rows.select("track", "start_ns", "end_ns", lane=pl.lit(-1, pl.Int64))])
        lanes = _placed(everything)
        if end_ns is not None:
            self._open = everything.with_columns(lane=lanes).filter(pl.col("end_ns") > end_ns)
        placed = lanes.slice(everything.height - rows.height)
        return rows.with_columns(lane=placed)


def _placed(ranges: pl.DataFrame) -> pl.Series:
    """The lane of each range; those that have one (not below 0) keep it."""
    if ranges.is_empty():
        return pl.Series("lane", [], pl.Int64)
    ordered = ranges.with_row_index("row").sort(*_ORDER, descending=_DESCENDING, maintain_order=True)
    grouped = ordered.select("start_ns", "end_ns", "lane", group="track")
    try:
        lanes = compiled.lanes(grouped, MOST_DEEP)
    except Refused:
        lanes = pl.Series(_greedy(grouped.select("group", "start_ns", "end_ns", "lane").iter_rows()), dtype=pl.Int64)
    return ordered.select("row").with_columns(lane=lanes).sort("row")["lane"]


def _greedy(ranges: Iterable[tuple[int, int, int, int]]) -> list[int]:
    """The first lane with room for each range, in order of group, start and length."""
    lanes: list[list[int]] = []
    found, last = [], -1
    for group, start, end, given in ranges:
        if group != last:
            lanes, last = [], group
        number = 0
        while True:
            if number == len(lanes):
                lanes.append([])
            open_ends = lanes[number]
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            has_room = len(open_ends) < MOST_DEEP and (not open_ends or open_ends[-1] >= end)
            if number == given if given >= 0 else has_room:
                open_ends.append(end)
                break
            number += 1
        found.append(number)
    return found
