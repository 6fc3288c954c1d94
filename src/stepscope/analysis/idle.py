"""Why the device, or in a CPU-only recording the framework, had nothing to do."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.activity import KINDS, is_on_device, split
from stepscope.analysis.base import analysis
from stepscope.analysis.step_windows import known_steps, step_windows

CAUSES = (
    "compile",
    "data_loading",
    "garbage_collection",
    "checkpoint",
    "synchronisation",
    "dispatch",
    "dependency",
    "python",
    "other",
)
"""Causes of idle time: a compiler runs; the training loop waits for a batch; Python collects garbage; a checkpoint is
written; the host waits for the device and so gives it no work; the host launches the next kernel too late; the next
kernel was launched in time but waits for another stream, an event or the hardware; (CPU) Python code outside any
operator; none of these is visible."""


@analysis("rank", together=True)
def idle(idle_pieces: pl.DataFrame) -> pl.DataFrame:
    """Split the free time of each step by its cause.

    Returns:
        `rank`, `step`, `cause` (one of `CAUSES`), `idle_ns`, `gaps` (pieces). Over the causes of a step,
        `idle_ns` sums to `breakdown`'s `free_ns`.
    """
    return (
        idle_pieces.group_by("rank", "step", "cause")
        .agg(idle_ns=pl.col("duration_ns").sum(), gaps=pl.len().cast(pl.Int64))
        .sort("rank", "step", "idle_ns", "cause", descending=[False, False, True, False])
    )


@analysis("rank", together=True)
def idle_pieces(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Cut the free time of each step into pieces of one cause.

    Returns:
        `rank`, `step`, `cause` (one of `CAUSES`), `start_ns`, `duration_ns`, in order of time.
    """
    windows = step_windows(known_steps(steps))
    cut = split(activity, windows.lazy(), KINDS)
    free = cut.filter(~(pl.col("computing") | pl.col("communication") | pl.col("memory"))).sort("rank", "start_ns")
    if kernels is not None:
        launches = (
            # Copies are left out: not every source records the call that starts them, and what the device waits
            # for in a gap is its next real work.
            kernels.filter(pl.col("kind") != "memory")
            .select("rank", "start_ns", "launch_start_ns", "launch_end_ns")
            .sort("rank", "start_ns", "launch_end_ns", "launch_start_ns", nulls_last=True)
            .rename({"start_ns": "next_ns"})
        )
        free = free.join_asof(
            launches, left_on="start_ns", right_on="next_ns", by="rank", strategy="forward", check_sortedness=False
        )
    else:
        free = free.with_columns(launch_start_ns=pl.lit(None, pl.Int64), launch_end_ns=pl.lit(None, pl.Int64))
    late = pl.col("launch_end_ns") > pl.col("start_ns")
    cause = (
        pl.when("compile")
        .then(pl.lit("compile"))
        .when("data")
        .then(pl.lit("data_loading"))
        .when("gc")
        .then(pl.lit("garbage_collection"))
        .when("checkpoint")
        .then(pl.lit("checkpoint"))
        .when(pl.col("sync") & is_on_device(activity))
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
        .join(windows.lazy().select("window", "step"), on="window")
        .select("rank", "step", "cause", "start_ns", "duration_ns")
        .sort("rank", "start_ns")
        .collect()
    )
