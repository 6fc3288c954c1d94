"""The steps of a timeline: bars of a thread of their own, named by the number of the step."""

from __future__ import annotations

import polars as pl

from stepscope.tables import STEPS

_THREAD = "100000"


def step_bars(events: pl.DataFrame) -> pl.DataFrame:
    """The events that mark steps.

    Args:
        events: `name`, `thread` and more.
    """
    return events.filter((pl.col("thread") == _THREAD) & pl.col("name").str.contains(r"^\d{1,9}$"))


def steps_of(bars: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps`, in order of time.

    MindSpore begins a bar where the first operator of the recording ran last. In PyNative its name, which has a number,
    may never come back: then all bars begin where the first one does, and each is longer than the one before by a step.
    A bar that begins where a shorter one does is therefore the step from the end of that one on.

    Args:
        bars: `name`, `start_ns`, `duration_ns`.
    """
    ranges = (
        bars.drop_nulls(["start_ns", "duration_ns"])
        .select("start_ns", step=pl.col("name").cast(pl.Int32), end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .sort("start_ns", "end_ns", "step")
        .unique("step", keep="first", maintain_order=True)
    )
    ended_ns = pl.col("end_ns").shift().over("start_ns")
    own = ranges.with_columns(start_ns=pl.coalesce(ended_ns, "start_ns"))
    window = {"window_start_ns": pl.col("start_ns"), "window_end_ns": pl.col("end_ns"), "window": pl.lit("stated")}
    return STEPS.shaped(own.sort("start_ns", "step").with_columns(**window))
