"""What comparisons ask of each side: its steps, which of them count, and what they consist of."""

from __future__ import annotations

import polars as pl

from stepscope.compare.registry import side_question
from stepscope.errors import Unavailable

PARTS = ("computing_ns", "communication_ns", "memory_ns", "free_ns")
"""Parts of a step that sum to it, as far as they are known: communication and memory operations not hidden by
computing."""


@side_question
def side_steps(
    step_times: pl.DataFrame | None,
    rank_steps: pl.DataFrame | None,
    left_out_steps: pl.DataFrame | None,
    outlier_steps: pl.DataFrame | None,
    with_first: bool = False,
) -> pl.DataFrame:
    """The steps of each rank, with their parts: `rank`, `step`, `step_ns`, `PARTS`, `left_out` (why it does not count,
    or null), `outlier` (whether it is far longer than others).

    First steps that are far longer than all others do not count, unless asked for (`with_first`).

    Raises:
        Unavailable: If no steps are known.
    """
    if step_times is not None:
        rows = step_times.select(
            *("rank", "step", "step_ns", "computing_ns"),
            communication_ns="communication_not_overlapped_ns",
            memory_ns="memory_not_overlapped_ns",
            free_ns="free_ns",
        )
    elif rank_steps is not None:
        rows = rank_steps.filter(pl.col("step_ns").is_not_null() & pl.col("step").is_not_null()).select(
            *("rank", "step", "step_ns", "computing_ns"),
            communication_ns="communication_not_overlapped_ns",
            memory_ns=pl.lit(None, pl.Int64),
            free_ns="free_ns",
        )
    else:
        raise Unavailable("no steps are known")
    if rows.is_empty():
        raise Unavailable("no steps are known")
    keys = ["rank", "step"]
    reasons = pl.DataFrame(schema={"step": rows.schema["step"], "left_out": pl.String})
    if left_out_steps is not None and not with_first:
        long = left_out_steps.filter(pl.col("reason") == "long")
        reasons = long.group_by("step").agg(left_out=pl.col("reason").first())
        if not rows.join(reasons, on="step", how="anti").height:
            reasons = reasons.clear()
    apart = [] if outlier_steps is None else outlier_steps["step"].unique().to_list()
    return (
        rows.join(reasons, on="step", how="left")
        .with_columns(outlier=pl.col("step").is_in(apart) & pl.col("left_out").is_null())
        .sort(keys)
    )


@side_question
def side_facts(ranks: pl.LazyFrame) -> pl.DataFrame:
    """Who recorded each rank, and where."""
    return ranks.collect().sort("rank")
