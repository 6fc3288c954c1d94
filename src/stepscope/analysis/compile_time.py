"""How long a compiler ran in each step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.step_windows import is_whole_recording
from stepscope.errors import Unavailable


@analysis("rank", together=True)
def compile_time(marks: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Sum up the time in which a compiler ran, by the step in which it began.

    Args:
        marks: When it ran.
        steps: The steps, by their ranges on the host.

    Returns:
        One row a step in which a compiler ran, in order: `rank`, `step` (null outside of all steps), `compile_ns`,
        `times` (how often it began), `recorded_steps` (how many steps the rank has; null where none are marked) and
        `recorded_ns` (what they last on the host, and the compiler before and after them; all that was recorded where
        none are marked).

    Raises:
        Unavailable: If no compiler ran.
    """
    ran = marks.filter(pl.col("what") == "compile").sort("start_ns")
    if ran.is_empty():
        raise Unavailable("no compiler ran while this was recorded")
    ranges = steps.select("rank", "step", "window", since_ns="start_ns", until_ns="end_ns").sort("since_ns").collect()
    marked = ~is_whole_recording()
    whole = ranges.group_by("rank").agg(
        recorded_steps=pl.when(marked.any()).then(pl.len().cast(pl.Int64)),
        since_ns=pl.col("since_ns").min(),
        until_ns=pl.col("until_ns").max(),
    )
    spent = ran.group_by("rank").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).join(whole, on="rank")
    first, last = pl.min_horizontal("start_ns", "since_ns"), pl.max_horizontal("end_ns", "until_ns")
    recorded = spent.select("rank", "recorded_steps", recorded_ns=last - first)
    placed = ran.join_asof(
        ranges.filter(marked), left_on="start_ns", right_on="since_ns", by="rank", check_sortedness=False
    )
    inside = pl.col("start_ns") < pl.col("until_ns")
    return (
        placed.with_columns(pl.when(inside).then("step").alias("step"))
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
