"""Which ranks do the same, so that their times can be compared, and which mostly the same."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.programs import LIMITS, Limits, programs
from stepscope.analysis.methods.shared_kernels import shared_kernels
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.operation_replay import places
from stepscope.tables import COLLECTIVES, KERNELS
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    Column("program", "int32", "Lowest of the ranks that compute and call the same: only these are compared."),
    Column("launching", "int32", "Lowest of the ranks that do the same as often, whatever the shapes."),
    Column("cluster", "int32", "Lowest of the ranks that run mostly the same kernels, as pipeline stages do."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def alike_ranks(
    several_ranks: pl.DataFrame,  # noqa: ARG001 - asked first: of one rank, the rest need not be computed
    work: pl.DataFrame,
    collectives: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    stage_shapes: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Sort ranks by what they do: one row per rank, in order.

    Ranks run the same program if they compute the same kernels and make the same calls. A rank that is alone in its
    program is compared with others if it runs all their kernels, however many more it runs itself (`extra_pieces`).
    Pipeline stages that run the same kernels on other shapes (`stage_shapes`) are programs of their own. Of jobs of
    which only operations are recorded, ranks of the same pipeline stage are compared, as operations do not show how
    many layers a stage has.
    """
    rows = work.filter(pl.col("step").is_not_null() & ~pl.col("kind").is_in(["communication", "waiting"]))
    computed = rows.filter((pl.col("kind") == "computing") & pl.col("name").is_not_null()).select(
        "rank", "step", what="name", length=pl.col("end_ns") - pl.col("start_ns")
    )
    called = COLLECTIVES.or_empty(collectives).filter(pl.col("step").is_not_null())
    calls = called.select("rank", "step", what="operation").collect()
    found = programs(median_counts(pl.concat([computed.drop("length"), calls])), limits)
    every = rows.select("rank").unique().join(found, on="rank", how="left")
    found = every.with_columns(pl.col("program").fill_null(pl.col("rank").min())).sort("rank")
    stages = None if ranks is None else _stages(KERNELS.or_empty(kernels), ranks, groups)
    if stages is not None and not stages.is_empty():
        apart = found.join(stages, on="rank", how="left", maintain_order="left")
        found = apart.select("rank", program=pl.col("rank").min().over("program", "stage"))
        return found.with_columns(launching="program", cluster="program").select(names(COLUMNS))
    middles = computed.group_by("rank", "what").agg(middle_ns=pl.col("length").median())
    counts = median_counts(computed.drop("length")).join(middles, on=["rank", "what"])
    shared = shared_kernels(found, counts).with_columns(launching="program")
    if stage_shapes is not None:
        apart = shared.join(stage_shapes, on="rank", how="left")
        shared = apart.with_columns(program=pl.col("rank").min().over("program", "shaped"))
    return shared.select(names(COLUMNS)).sort("rank")


def _stages(kernels: pl.LazyFrame, ranks: pl.LazyFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """The stages of ranks whose operations state their micro-batch."""
    by_operations = kernels.filter(pl.col("micro_batch").is_not_null()).select("rank").unique().collect()
    if by_operations.is_empty():
        return by_operations
    return places(ranks, groups).join(by_operations, on="rank", how="semi").select("rank", "stage")


def median_counts(does: pl.DataFrame) -> pl.DataFrame:
    """What each rank does in its median step, and how often, of the steps in which it does anything; so neither a
    recording that was cut nor an odd step makes another program of it.

    Args:
        does: `rank`, `step` and `what`, a row for each time.

    Returns:
        `rank`, `what` and `count`.
    """
    steps = does.group_by("rank").agg(steps=pl.col("step").n_unique())
    counts = (
        does.group_by("rank", "what", "step").agg(count=pl.len()).group_by("rank", "what").agg(pl.col("count").sort())
    )
    # it does nothing of the kind in the steps that are not listed
    middle = (pl.col("steps") // 2).cast(pl.Int64) - (pl.col("steps") - pl.col("count").list.len()).cast(pl.Int64)
    found = counts.join(steps, on="rank").with_columns(middle=middle).filter(pl.col("middle") >= 0)
    return found.select("rank", "what", count=pl.col("count").list.get(pl.col("middle")).cast(pl.Int64))
