"""Ancestors of ranges, along the parents that `nesting.py` gives them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.sources.native import ancestors as compiled
from stepscope.sources.native.library import Refused


def climb(rows: pl.Series, parent: pl.Series, wanted: pl.Series) -> pl.Series:
    """For each row (or null) the nearest wanted one: itself or an ancestor; null if there is none.

    Args:
        rows: Row numbers of ranges, Int64.
        parent: The parent of each range, as `nest` gives it.
        wanted: Row numbers of the ranges to find, Int64.
    """
    try:
        return compiled.climb(rows, parent, wanted)
    except Refused:
        others = pl.repeat(True, len(parent), dtype=pl.Boolean, eager=True).scatter(wanted, False)
        return _first(rows, parent, others.gather)


def running(ranges: pl.DataFrame, parent: pl.Series, wanted: int, moments: pl.DataFrame) -> pl.Series:
    """The innermost range that is running at each moment on its thread; null if there is none.

    A range that ends at the moment is still running. Of ranges that start together the shorter one is inside.

    Args:
        ranges: `start_ns`, `duration_ns` and `thread` (Int64, small numbers from 0 on).
        parent: The parent of each range, as `nest` gives it.
        wanted: Only so many of the ranges, the first ones, may be found.
        moments: `start_ns` and `thread` of each.
    """
    threads, starts, durations = (ranges[name] for name in ("thread", "start_ns", "duration_ns"))
    times = moments["start_ns"]
    try:
        return compiled.running(threads, starts, durations, parent, wanted, moments["thread"], times)
    except Refused:
        ends = starts + durations
        last = _last_started(ranges[:wanted], moments)
        return _first(last, parent, lambda rows: (ends.gather(rows) < times) | (rows >= wanted))


def _last_started(ranges: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The range that started last on each moment's thread."""
    started = ranges.with_row_index("row").sort("start_ns", "duration_ns", "row", descending=[False, True, False])
    asked = moments.select("start_ns", "thread").with_row_index("moment").sort("start_ns")
    last = asked.join_asof(started, on="start_ns", by="thread", check_sortedness=False).sort("moment")["row"]
    rows: pl.Series = last.cast(pl.Int64)
    return rows


def _first(rows: pl.Series, parent: pl.Series, is_wrong: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The first right one of each row and its ancestors."""
    while (wrong := is_wrong(rows)).any():
        above = pl.DataFrame({"row": rows, "up": parent.gather(rows), "wrong": wrong})
        rows = above.select(pl.when("wrong").then("up").otherwise("row")).to_series()
    return rows
