"""Why the device, or in a CPU-only recording the framework, had nothing to do."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.intervals import pieces
from stepscope.analysis.layers import SYNCHRONISATION, layers, nothing, ranges

CAUSES = (
    "data_loading",
    "garbage_collection",
    "synchronisation",
    "dispatch",
    "dependency",
    "python",
    "other",
)
"""Causes of idle time: the training loop waits for a batch; Python collects garbage; the host waits for the device
and so gives it no work; the host launches the next kernel too late; the next kernel was launched in time but waits
for another stream, an event or the hardware; (CPU) Python code outside any operator; none of these is visible."""


@analysis("rank")
def idle(
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Split the free time of each step by its cause.

    Returns:
        `rank`, `step`, `cause` (one of `CAUSES`), `idle_ns`, `gaps` (pieces). Over the causes of a step,
        `idle_ns` sums to `breakdown`'s `free_ns`.
    """
    active = layers(kernels, collectives, operators, slices)
    host = _host_ranges(slices)
    windows = (
        steps.sort("window_start_ns")
        .select("rank", "step", start_ns="window_start_ns", end_ns="window_end_ns")
        .with_row_index("window")
        .with_columns(pl.col("window").cast(pl.Int64))
        .collect()
    )
    cut = pieces(
        {
            "computing": active.computing,
            "communication": active.communication,
            "memory": active.memory,
            "data": active.data,
            **host,
        },
        windows.lazy(),
    )
    if not active.on_device:
        cut = cut.with_columns(computing=pl.col("computing") & ~pl.col("data"))
    free = cut.filter(~(pl.col("computing") | pl.col("communication") | pl.col("memory"))).sort("start_ns")
    if active.on_device and kernels is not None:
        launches = (
            # Copies are left out: not every source records the call that starts them, and what the device waits
            # for in a gap is its next real work.
            kernels.filter(pl.col("kind") != "memory")
            .select("start_ns", "launch_start_ns", "launch_end_ns")
            .sort("start_ns")
            .rename({"start_ns": "next_ns"})
        )
        free = free.join_asof(
            launches, left_on="start_ns", right_on="next_ns", strategy="forward", check_sortedness=False
        )
    else:
        free = free.with_columns(launch_start_ns=pl.lit(None, pl.Int64), launch_end_ns=pl.lit(None, pl.Int64))
    late = pl.col("launch_end_ns") > pl.col("start_ns")
    cause = (
        pl.when("data")
        .then(pl.lit("data_loading"))
        .when("gc")
        .then(pl.lit("garbage_collection"))
        .when(pl.col("sync") & pl.lit(active.on_device))
        .then(pl.lit("synchronisation"))
        .when(late)
        .then(pl.lit("dispatch"))
        .when(pl.col("launch_end_ns").is_not_null())
        .then(pl.lit("dependency"))
        .when("python")
        .then(pl.lit("python"))
        .otherwise(pl.lit("other"))
    )
    return (
        free.with_columns(cause=cause)
        .group_by("window", "cause")
        .agg(idle_ns=pl.col("duration_ns").sum(), gaps=pl.len().cast(pl.Int64))
        .join(windows.lazy().select("window", "rank", "step"), on="window")
        .select("rank", "step", "cause", "idle_ns", "gaps")
        .sort("rank", "step", "idle_ns", descending=[False, False, True])
        .collect()
    )


def _host_ranges(slices: pl.LazyFrame | None) -> dict[str, pl.LazyFrame]:
    """Host ranges that explain idle time."""
    if slices is None:
        return {"sync": nothing(), "gc": nothing(), "python": nothing()}
    category = pl.col("category")
    return {
        "sync": ranges(
            slices.filter(category.is_in(["runtime", "operator"]) & pl.col("name").str.contains(SYNCHRONISATION))
        ),
        "gc": ranges(slices.filter(category == "gc")),
        # Only the innermost frames would show what runs; all together show that Python runs at all, which the
        # outermost frame of a recording (the script) always does, so whole-recording frames are left out.
        "python": ranges(slices.filter((category == "python") & (pl.col("depth") > 1))),
    }
