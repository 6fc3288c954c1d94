"""How long each rank was busy with its own work in each step, by kind, and which ranks can be compared."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.programs import LIMITS, Limits, programs
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.work import KINDS
from stepscope.tables import COLLECTIVES
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    meaning("kind", "What it is.", values=KINDS),
    Column("own_ns", "int64", "Sum of its pieces of `work`, without waiting for other ranks."),
    Column("pieces", "int64", "Number of pieces."),
    Column("program", "int32", "Lowest of the ranks that compute and call the same: only these are compared."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def own_times(
    several_ranks: pl.DataFrame,  # noqa: ARG001 - asked first: of one rank, the rest need not be computed
    work: pl.DataFrame,
    collectives: pl.LazyFrame | None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Sum each rank's own work by step and kind: one row per rank, step and kind; 0 for kinds that only others have.

    Calls are left out: their time depends on other ranks. Ranks run the same program if they compute the same kernels
    and make the same calls.
    """
    rows = work.filter(pl.col("step").is_not_null() & ~pl.col("kind").is_in(["communication", "waiting"]))
    sums = rows.group_by("rank", "step", "kind").agg(
        own_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(), pieces=pl.len().cast(pl.Int64)
    )
    every = rows.select("rank", "step").unique().join(sums.select("kind").unique(), how="cross")
    found = every.join(sums, on=["rank", "step", "kind"], how="left").with_columns(
        pl.col("own_ns", "pieces").fill_null(0)
    )
    return (
        found.join(programs(_done(rows, COLLECTIVES.or_empty(collectives)), limits), on="rank", how="left")
        .with_columns(pl.col("program").fill_null(pl.col("rank").min()))
        .select(names(COLUMNS))
        .sort("rank", "step", "kind")
    )


def _done(rows: pl.DataFrame, collectives: pl.LazyFrame) -> pl.DataFrame:
    """What each rank computes and calls in a step, and how often."""
    steps = rows.group_by("rank").agg(steps=pl.col("step").n_unique())
    computed = rows.filter((pl.col("kind") == "computing") & pl.col("name").is_not_null())
    called = collectives.filter(pl.col("step").is_not_null()).select("rank", what="operation").collect()
    parts = [computed.select("rank", what="name"), called]
    counts = pl.concat(parts).group_by("rank", "what").agg(count=pl.len()).join(steps, on="rank")
    per_step = (pl.col("count") / pl.col("steps")).round().cast(pl.Int64)
    return counts.select("rank", "what", count=per_step).filter(pl.col("count") > 0)
