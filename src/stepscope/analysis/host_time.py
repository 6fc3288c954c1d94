"""What the host spent its time on, by module, event and stage, as the framework itself marks them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.statistics import duration_statistics, share

KEYS = ("module", "event", "stage")


@analysis("rank")
def host_time(host_events: pl.LazyFrame) -> pl.DataFrame:
    """Sum up the marked ranges.

    Returns:
        `rank`, `module`, `event`, `stage`, the statistics of `duration_statistics` (of ranges), `self_ns` (less the
        ranges directly within on the same thread), `share_ratio` (of the self time of all), `points` (marks without a
        length: moments, and starts without an end). Longest self time first.
    """
    rows = host_events.select("rank", *KEYS, "process", "thread", "start_ns", "duration_ns").collect()
    ranges = rows.filter(pl.col("duration_ns").is_not_null())
    points = rows.filter(pl.col("duration_ns").is_null()).group_by("rank", *KEYS).agg(points=pl.len().cast(pl.Int64))
    sums = _with_self(ranges).group_by("rank", *KEYS).agg(*duration_statistics(), pl.col("self_ns").sum())
    return (
        sums.join(points, on=["rank", *KEYS], how="full", coalesce=True, nulls_equal=True)
        .with_columns(pl.col("points", "count", "total_ns", "self_ns").fill_null(0))
        .with_columns(share("self_ns"))
        .sort("rank", "self_ns", *KEYS, descending=[False, True, False, False, False], nulls_last=True)
    )


def _with_self(ranges: pl.DataFrame) -> pl.DataFrame:
    """Ranges with their length less that of the ranges directly within, on one thread."""
    ordered = ranges.sort("process", "thread", "start_ns", -pl.col("duration_ns"), *KEYS)
    within = [0] * ordered.height
    open_ranges: list[tuple[int, int]] = []  # end, place
    last = None
    columns = ordered.select("process", "thread", "start_ns", "duration_ns").iter_rows()
    for place, (process, thread, start, length) in enumerate(columns):
        if (process, thread) != last:
            last, open_ranges = (process, thread), []
        while open_ranges and open_ranges[-1][0] <= start:
            open_ranges.pop()
        if open_ranges:
            end, parent = open_ranges[-1]
            within[parent] += min(start + length, end) - start
        open_ranges.append((start + length, place))
    return ordered.with_columns(self_ns=(pl.col("duration_ns") - pl.Series(within, dtype=pl.Int64)).clip(0))
