"""The steps that a rank recorded, regardless of the user's selection."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.step_windows import known_steps
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.marked_steps import unrecorded_steps
from stepscope.tables.base import Column


@analysis(
    "rank",
    columns(
        "rank",
        Column("first_step", "int32", "Number of the first step."),
        Column("first_ns", "int64", "Start of the first step's window.", moment=True),
        Column("last_ns", "int64", "Start of the last step's window.", moment=True),
        nulls="",
    ),
    together=True,
    every_step=True,
)
def outer_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """Find the first and the last step of each rank.

    The first step of a recording is start-up and the last one is often incomplete; this is not true of the first and
    last step of a selection.

    Args:
        steps: All steps. On a device, steps without recorded work do not count.

    Returns:
        One row per rank.
    """
    devices = steps.filter(pl.col("window") == "device").select("rank").unique()
    marked = unrecorded_steps(steps).join(devices, on="rank", how="anti")
    rows = pl.concat([known_steps(steps), marked])
    start = pl.col("window_start_ns")
    return (
        rows.group_by("rank")
        .agg(first_step=pl.col("step").min(), first_ns=start.min(), last_ns=start.max())
        .sort("rank")
        .collect()
    )


@analysis("rank", columns("rank step window start_ns end_ns", nulls=""), together=True, every_step=True)
def all_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """List the recorded steps and their ranges on the host.

    Returns:
        One row per step, by rank and start.
    """
    return (
        steps.select("rank", "step", "window", "start_ns", "end_ns")
        .sort("rank", "start_ns", "end_ns", "step")
        .collect()
    )
