"""Few steps in which one rank stops for long, several steps' time together, and what that costs the job."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    "step",
    Column("rank", "int32", "Rank that stops.", nullable=False),
    meaning("kind", "What it takes longer for.", values=WORK),
    Column("excess_ns", "int64", "Extra time compared with the typical rank; of several stalls of a rank, the mean."),
    meaning("window_ns", "Length of the step on this rank."),
    Column("median_ns", "int64", "Length of the rank's median step; of two steps, of the shorter one."),
    Column(
        "cost_ns", "int64", "What the mean step would be shorter without it, by replay; of several stalls, its share."
    ),
    Column("cost_ratio", "float64", "`cost_ns` over the mean step."),
    Column("saving_low_ns", "int64", "What that may be at least."),
    Column("saving_high_ns", "int64", "What that may be at most."),
    meaning("steps", "Number of steps of the rank."),
    Column("recorded_ns", "int64", "Length of these steps."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True, across_steps=True)
def single_stalls(
    suspects: pl.DataFrame, suspect_costs: pl.DataFrame, late_ranks: pl.DataFrame, step_lengths: pl.DataFrame
) -> pl.DataFrame:
    """Find the steps in which a rank alone stops for long: one stall, or a few together, for longer than several steps
    take. Any rank may be struck by such stalls, so they do not make the rank a slow one. What they cost is found by
    replay (`suspect_costs`).

    Returns:
        One row per step and rank, in order.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    count = pl.col("slow_steps").list.len()
    stalls = suspects.filter("is_stall").select("suspect", "kind", rank="ranks", step="slow_steps", stalls=count)
    single = stalls.explode("rank").explode("step").with_columns(pl.col("rank", "step").cast(pl.Int32))
    if single.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    costs = suspect_costs.filter(pl.col("ranks").list.len() == 1).with_columns(suspect=pl.col("ranks").list.first())
    late = late_ranks.filter("is_stall").select("rank", "kind", "excess_ns", step="slow_steps").explode("step")
    keys = ["rank", "step"]
    usual = step_lengths.group_by("rank").agg(
        median_ns=pl.col("window_ns").quantile(0.5, "lower").cast(pl.Int64),
        steps=pl.len().cast(pl.Int64),
        recorded_ns=pl.col("window_ns").sum(),
    )
    lengths = step_lengths.select(*keys, "window_ns")
    found = (
        single.join(costs, on="suspect").join(late, on=[*keys, "kind"]).join(lengths, on=keys).join(usual, on="rank")
    )
    share = [(pl.col(name) / pl.col("stalls")).alias(name) for name in _COSTS]
    whole = [pl.col(name).round().cast(pl.Int64) for name in _COSTS if name.endswith("_ns")]
    return found.with_columns(share).with_columns(whole).select(names(COLUMNS)).sort("step", "rank", "kind")


_COSTS = ("cost_ns", "cost_ratio", "saving_low_ns", "saving_high_ns")
