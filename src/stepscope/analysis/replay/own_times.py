"""How long each rank was busy with its own work in each step, by kind, and which ranks can be compared."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.programs import LIMITS, Limits, programs
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.replay.operation_replay import places
from stepscope.analysis.replay.work import HOST, KINDS, MARKED, ON_HOST
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS
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
    operators: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Sum each rank's own work by step and kind: one row per rank, step and kind; 0 for kinds that only others have.

    Calls are left out: their time depends on other ranks. If a step's operators were not recorded, what is not marked
    is unknown: its rows are missing. Of a CPU without any, only phases show when it computes, and it may wait for other
    ranks in them, so how long it computes is unknown. What its host did is left out of a rank of whose host less was
    recorded than of others. Ranks run the same program if they compute the same kernels and make the same calls; of
    jobs of which only operations are recorded, if they are of the same pipeline stage, as operations do not show how
    many layers a stage has.
    """
    rows = work.filter(pl.col("step").is_not_null() & ~pl.col("kind").is_in(["communication", "waiting"]))
    sums = rows.group_by("rank", "step", "kind").agg(
        own_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(), pieces=pl.len().cast(pl.Int64)
    )
    every = rows.select("rank", "step").unique().join(sums.select("kind").unique(), how="cross")
    found = (
        every.join(sums, on=["rank", "step", "kind"], how="left")
        .with_columns(pl.col("own_ns", "pieces").fill_null(0))
        .join(_unknown(steps), on=["rank", "step", "kind"], how="anti")
    )
    seen = [*ranks_of(OPERATORS.or_empty(operators)), *([] if marks is None else marks["rank"].unique().to_list())]
    unseen = ~pl.col("rank").is_in(seen)
    in_phases = (pl.col("kind") == "computing") & pl.col("rank").is_in(_by_phases(rows, operators))
    uneven = pl.col("kind").is_in(ON_HOST) & unseen & ~unseen.all().over("program")
    alike = programs(_done(rows, COLLECTIVES.or_empty(collectives)), limits)
    if ranks is not None:
        alike = _by_stage(alike, KERNELS.or_empty(kernels), ranks)
    return (
        found.join(alike, on="rank", how="left")
        .with_columns(pl.col("program").fill_null(pl.col("rank").min()))
        .filter(~uneven & ~in_phases)
        .select(names(COLUMNS))
        .sort("rank", "step", "kind")
    )


def _by_stage(alike: pl.DataFrame, kernels: pl.LazyFrame, ranks: pl.LazyFrame) -> pl.DataFrame:
    """The programs of ranks, apart for each stage where operations state their micro-batch."""
    by_operations = kernels.filter(pl.col("micro_batch").is_not_null()).select("rank").unique().collect()
    if by_operations.is_empty():
        return alike
    stages = places(ranks).join(by_operations, on="rank", how="semi").select("rank", "stage")
    apart = alike.join(stages, on="rank", how="left", maintain_order="left")
    return apart.select("rank", program=pl.col("rank").min().over("program", "stage"))


def _by_phases(rows: pl.DataFrame, operators: pl.LazyFrame | None) -> list[int]:
    """The ranks that compute on their host and of which no operators were recorded."""
    on_host = rows.filter((pl.col("kind") == "computing") & (pl.col("lane") == HOST))["rank"].unique().to_list()
    return sorted({*on_host} - {*ranks_of(OPERATORS.or_empty(operators))})


def _unknown(steps: pl.LazyFrame) -> pl.DataFrame:
    """The kinds of work of steps without recorded operators that no mark shows: `rank`, `step`, `kind`."""
    unmarked = pl.DataFrame({"kind": [kind for kind in KINDS if kind not in MARKED.values()]})
    return steps.filter(~pl.col("recorded")).select("rank", "step").collect().join(unmarked, how="cross")


def _done(rows: pl.DataFrame, collectives: pl.LazyFrame) -> pl.DataFrame:
    """What each rank computes and calls in its median step, and how often, of the steps in which it does anything; so
    neither a recording that was cut nor an odd step makes another program of it."""
    computed = rows.filter((pl.col("kind") == "computing") & pl.col("name").is_not_null())
    called = collectives.filter(pl.col("step").is_not_null()).select("rank", "step", what="operation").collect()
    does = pl.concat([computed.select("rank", "step", what="name"), called])
    steps = does.group_by("rank").agg(steps=pl.col("step").n_unique())
    counts = (
        does.group_by("rank", "what", "step").agg(count=pl.len()).group_by("rank", "what").agg(pl.col("count").sort())
    )
    # it does nothing of the kind in the steps that are not listed
    middle = (pl.col("steps") // 2).cast(pl.Int64) - (pl.col("steps") - pl.col("count").list.len()).cast(pl.Int64)
    found = counts.join(steps, on="rank").with_columns(middle=middle).filter(pl.col("middle") >= 0)
    return found.select("rank", "what", count=pl.col("count").list.get(pl.col("middle")).cast(pl.Int64))
