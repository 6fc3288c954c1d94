"""The steps that a rank recorded, regardless of the user's selection; those that a device's step table states."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.step_windows import known_steps
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.marked_steps import unrecorded_steps
from stepscope.errors import Unavailable
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
    """Find the first and the last step of each rank: one row per rank. On a device, steps without recorded work do not
    count.

    The first step of a recording is start-up and the last one is often incomplete; this is not true of the first and
    last step of a selection.
    """
    devices = steps.filter(pl.col("window") == "device").select("rank").unique()
    marked = unrecorded_steps(steps).join(devices, on="rank", how="anti")
    rows = pl.concat([known_steps(steps), marked])
    start = pl.col("window_start_ns")
    found = rows.group_by("rank").agg(first_step=pl.col("step").min(), first_ns=start.min(), last_ns=start.max())
    return found.sort("rank").collect()


@analysis("rank", columns("rank step window start_ns end_ns", nulls=""), together=True, every_step=True)
def all_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """List the recorded steps and their ranges on the host: one row per step, by rank and start."""
    ordered = steps.sort("rank", "start_ns", "end_ns", "step")
    return ordered.select("rank", "step", "window", "start_ns", "end_ns").collect()


@analysis("job", columns("rank step", nulls=""))
def device_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """Find the steps that come from a device's step table, not from a timeline: one row per step, in order.

    Rules about these steps only ask this first: most recordings have none, and the rest is slow to compute.

    Raises:
        Unavailable: If there are none.
    """
    found = steps.filter(pl.col("window") == "stated").select("rank", "step").sort("rank", "step").collect()
    if found.is_empty():
        raise Unavailable("no device step table was recorded")
    return found
