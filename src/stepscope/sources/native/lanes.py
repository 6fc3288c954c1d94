"""Lanes of ranges; `timeline/lanes.py` says what they are and does the same in Python."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded


def lanes(ranges: pl.DataFrame, most_deep: int) -> pl.Series:
    """The lane of each range.

    Args:
        ranges: `group`, `start_ns`, `end_ns` and `lane` (below 0: any), Int64 without nulls, in order of group, start
            and, of equal starts, the longer first.
        most_deep: Ranges within one another on a lane.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, found = loaded(), NewColumn()
    given = GivenColumns(*ranges.select("group", "start_ns", "end_ns", "lane"))
    if native.ss_lanes(*given.pointers, ranges.height, most_deep, *found.pointers) < 0:
        raise Refused
    return found.series("lane")
