"""Which row of another table belongs to each row: the one with the same key, or the one that holds the time."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native import matching as compiled
from stepscope.sources.native.library import Refused

_NEVER = 2**63 - 1


def first_match(keys: pl.Series, among: pl.Series) -> pl.Series:
    """Row number of the first of `among` with each key (Int64); null for null, and if there is none.

    Examples:
        >>> first_match(pl.Series([7, 8, None]), pl.Series([5, 7, None, 7])).to_list()
        [1, None, None]
    """
    try:
        return compiled.match(keys, among)
    except Refused:
        first = among.alias("key").to_frame().with_row_index("row").unique("key", keep="first").drop_nulls("key")
        found = keys.alias("key").to_frame().join(first, on="key", how="left", maintain_order="left")["row"]
        rows: pl.Series = found.cast(pl.Int64)
        return rows


def neighbours(first: pl.Series, second: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Row numbers (Int64) of the last row before each one with the same two keys, and of the first one behind it; null
    if there is none.

    Args:
        first: Whole numbers; nulls are equal to each other.
        second: The same.

    Examples:
        >>> before, behind = neighbours(pl.Series([1, None, 1, 1]), pl.Series([7, 7, 8, 7]))
        >>> before.to_list(), behind.to_list()
        ([None, None, None, 0], [3, None, None, None])
    """
    first, second = first.cast(pl.Int64), second.cast(pl.Int64)
    try:
        return compiled.neighbours(first, second)
    except Refused:
        keys = pl.DataFrame([first.alias("first"), second.alias("second")]).with_row_index("row")
        row = pl.col("row").cast(pl.Int64)
        found = keys.select(row.shift(n).over("first", "second").alias(str(n)) for n in (1, -1))
        return found["1"].alias(""), found["-1"].alias("")


def last_started(times: pl.Series, starts: pl.Series) -> pl.Series:
    """Row number of the last start at or before each time; null for null, and if there is none.

    Args:
        times: Moments in ns, Int64.
        starts: Moments in ns, Int64, in order.

    Examples:
        >>> last_started(pl.Series([4, 5, 10, None]), pl.Series([5, 10, 10])).to_list()
        [None, 0, 2, None]
    """
    try:
        return compiled.hold(times, starts, pl.repeat(_NEVER, len(starts), dtype=pl.Int64, eager=True))
    except Refused:
        index = starts.search_sorted(times, side="right").cast(pl.Int64) - 1
        known = (pl.col("row") >= 0) & times.is_not_null()
        rows: pl.Series = index.to_frame("row").select(pl.when(known).then("row").alias("")).to_series()
        return rows


def holding(times: pl.Series, ranges: pl.DataFrame) -> pl.Series:
    """Row number of the range that holds each time; null for null, and if there is none.

    Args:
        times: Moments in ns, Int64.
        ranges: `start_ns` and `end_ns`, in order of time; they do not overlap, and a range does not hold its end.

    Examples:
        >>> holding(pl.Series([5, 9, 10, None]), pl.DataFrame({"start_ns": [5, 10], "end_ns": [8, 20]})).to_list()
        [0, None, 1, None]
    """
    starts, ends = ranges["start_ns"], ranges["end_ns"]
    try:
        return compiled.hold(times, starts, ends)
    except Refused:
        index = starts.search_sorted(times, side="right").cast(pl.Int64) - 1
        last = index.to_frame("row").select(pl.when((pl.col("row") >= 0) & times.is_not_null()).then("row")).to_series()
        rows = pl.DataFrame({"row": last, "inside": times < ends.gather(last)})
        return rows.select(pl.when("inside").then("row").alias("")).to_series()
