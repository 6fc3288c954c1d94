"""Ranges on lanes: on one lane of a viewer, ranges must follow one another or lie within one another."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.sources.nesting import enclosing

MOST_DEEP = 250
"""Ranges within one another on a lane; Perfetto's trace processor drops those from 256 levels on."""

_OPEN = {"track": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64, "lane": pl.Int32}


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
        rows = rows.sort("track", "start_ns", "end_ns", descending=[False, False, True], maintain_order=True)
        ranges = rows.select("track", "start_ns", "end_ns", lane=pl.lit(None, pl.Int32))
        everything = pl.concat([self._open, ranges])
        lanes = _placed(everything)
        if end_ns is not None:
            held = everything.with_columns(lane=lanes).filter(pl.col("end_ns") > end_ns)
            self._open = held.sort("track", "start_ns", "end_ns", descending=[False, False, True])
        placed = lanes.slice(everything.height - rows.height)
        return rows.with_columns(lane=placed)


def _placed(ranges: pl.DataFrame) -> pl.Series:
    """The lane of each range; those that have one, which come first, keep it."""
    if ranges.is_empty():
        return pl.Series("lane", [], pl.Int32)
    nested = enclosing(
        ranges.select("start_ns", duration_ns=pl.col("end_ns") - pl.col("start_ns"), thread=pl.col("track"))
    )
    around = nested["parent"]
    ends = ranges["end_ns"]
    overhang = (ends > ends.gather(around)).fill_null(False) | (nested["depth"] >= MOST_DEEP)
    is_odd = overhang | (ranges["lane"] > 0).fill_null(False)
    if not is_odd.any():
        return pl.repeat(0, ranges.height, dtype=pl.Int32, eager=True).alias("lane")
    # A group is what overlaps without a break; only groups in which something is odd are placed one by one.
    outermost = (
        ranges.with_row_index("row")
        .with_columns(odd=is_odd)
        .sort("track", "start_ns", "end_ns", descending=[False, False, True], maintain_order=True)
    )
    reach = pl.col("end_ns").cum_max().over("track").shift(1).over("track")
    group = (pl.col("start_ns") >= reach).fill_null(True).cum_sum()
    grouped = outermost.with_columns(group=group).with_columns(odd=pl.col("odd").any().over("group"))
    hard = grouped.filter("odd")
    lanes = pl.Series(_greedy(hard.select("group", "start_ns", "end_ns", "lane").iter_rows()), dtype=pl.Int32)
    found = pl.concat(
        [
            grouped.filter(~pl.col("odd")).select("row", lane=pl.lit(0, pl.Int32)),
            hard.select("row").with_columns(lane=lanes),
        ]
    )
    return found.sort("row")["lane"]


def _greedy(ranges: Iterable[tuple[int, int, int, int | None]]) -> list[int]:
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
            if given == number or (
                given is None and len(open_ends) < MOST_DEEP and (not open_ends or open_ends[-1] >= end)
            ):
                open_ends.append(end)
                break
            number += 1
        found.append(number)
    return found
