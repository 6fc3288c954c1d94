"""What the host spent its time on, by module, event and stage as marked by the framework."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.host.host_memory import KEYS
from stepscope.analysis.methods.statistics import duration_statistics, share
from stepscope.analysis.methods.step_windows import count_steps, of_steps, step_ranges
from stepscope.analysis.registry import analysis
from stepscope.selection import Choice
from stepscope.sources.nesting import nest


@analysis(
    "rank",
    columns(
        "rank module event stage",
        meaning("count", "Number of ranges."),
        "total_ns mean_ns min_ns median_ns p95_ns max_ns",
        meaning("self_ns", "Time excluding the ranges directly inside, on the same thread."),
        meaning("points", "Number of marks without a duration: instants, and starts without an end."),
        "share_ratio",
        meaning("steps", "Number of steps in which they lie; null if unknown."),
        keep="event total_ns module stage count self_ns share_ratio max_ns",
    ),
    together=True,
)
def host_time(
    host_events: pl.LazyFrame,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Sum the durations of marked ranges: one row per module, event and stage, longest self time first.

    Args:
        chosen: Only ranges that begin in these steps, e.g. `1-3`; all ranges if their steps are unknown.
    """
    columns = ("rank", "step", *KEYS, "process", "thread", "start_ns", "duration_ns")
    marked = host_events.select(columns).collect()
    rows = of_steps(marked, step_ranges(steps, ranks), chosen, "start_ns")
    in_steps = rows.group_by("rank", *KEYS).agg(steps=count_steps())
    ranges = rows.filter(pl.col("duration_ns").is_not_null())
    points = rows.filter(pl.col("duration_ns").is_null()).group_by("rank", *KEYS).agg(points=pl.len().cast(pl.Int64))
    sums = _with_self(ranges).group_by("rank", *KEYS).agg(*duration_statistics(), pl.col("self_ns").sum())
    return (
        sums.join(points, on=["rank", *KEYS], how="full", coalesce=True, nulls_equal=True)
        .with_columns(pl.col("points", "count", "total_ns", "self_ns").fill_null(0))
        .with_columns(share("self_ns"))
        .join(in_steps, on=["rank", *KEYS], how="left", nulls_equal=True)
        .sort("rank", "self_ns", *KEYS, descending=[False, True, False, False, False], nulls_last=True)
    )


def _with_self(ranges: pl.DataFrame) -> pl.DataFrame:
    """Ranges with `self_ns`: their duration minus that of the ranges directly inside, on the same thread."""
    ordered = ranges.sort(KEYS)  # of equal ranges, the first is outside
    nested = nest(ordered.select("start_ns", "duration_ns", thread=pl.struct("rank", "process", "thread")))
    return ordered.with_columns(nested["self_ns"])
