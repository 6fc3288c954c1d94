"""How long a compiler ran in each step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.intervals import with_last
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

NO_COMPILER = "no compiler ran during the recording"


@analysis(
    "rank",
    columns(
        "rank step compile_ns",
        Column("times", "int64", "How often the compiler started."),
        Column("recorded_steps", "int64", "Number of steps of the rank; null if none are marked."),
        meaning("recorded_ns", "Recorded host time, including compiling before and after the steps."),
        nulls="step recorded_steps",
    ),
    together=True,
    nothing=NO_COMPILER,
)
def compile_time(marks: pl.DataFrame, steps: pl.LazyFrame, all_steps: pl.DataFrame) -> pl.DataFrame:
    """Sum the time spent compiling: one row per step in which a compiler began, in order; null is outside all steps.

    Compiling in steps that the user did not select does not count; `all_steps` shows which these are.

    Raises:
        Unavailable: If no compiler ran.
    """
    ran = _in_selected(marks.filter(pl.col("what") == "compile"), steps, all_steps)
    if ran.is_empty():
        raise Unavailable(NO_COMPILER)
    ranges = steps.select("rank", "step", "window", "start_ns", "end_ns").collect()
    marked = ~is_whole_recording()
    whole = ranges.group_by("rank").agg(
        recorded_steps=pl.when(marked.any()).then(pl.len().cast(pl.Int64)),
        since_ns=pl.col("start_ns").min(),
        until_ns=pl.col("end_ns").max(),
    )
    spent = ran.group_by("rank").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).join(whole, on="rank")
    first, last = pl.min_horizontal("start_ns", "since_ns"), pl.max_horizontal("end_ns", "until_ns")
    recorded = spent.select("rank", "recorded_steps", recorded_ns=last - first)
    inside = pl.col("start_ns") < pl.col("until_ns")
    return (
        with_last(ran, ranges.filter(marked), "step")
        .with_columns(pl.when(inside).then("step").alias("step"))
        .group_by("rank", "step")
        .agg(
            first_ns=pl.col("start_ns").min(),
            compile_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
            times=pl.len().cast(pl.Int64),
        )
        .join(recorded, on="rank", how="left")
        .sort("rank", "first_ns")
        .drop("first_ns")
    )


def _in_selected(ran: pl.DataFrame, steps: pl.LazyFrame, all_steps: pl.DataFrame) -> pl.DataFrame:
    """Ranges that begin in selected steps; all ranges of a rank if all of its steps are selected."""
    selected = steps.select("rank", "step", selected=True).collect()
    known = all_steps.join(selected, on=["rank", "step"], how="left", maintain_order="left")
    narrowed = known.filter(pl.col("selected").is_null())["rank"].unique().to_list()
    inside = pl.col("selected").fill_null(False) & (pl.col("start_ns") < pl.col("until_ns"))
    return with_last(ran, known, "selected").filter(inside | ~pl.col("rank").is_in(narrowed)).select(ran.columns)
