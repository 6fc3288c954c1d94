"""What makes passes of micro-batches take longer than the mean pass: their stage, their rank, their replica or the
micro-batch itself.

A pass takes the mean of its name, times a factor for each of these, times a rest that is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import polars as pl

from stepscope.analysis.replay.operation_graph import COMPUTING
from stepscope.limits import limit

WORKER, REPLICA, STAGE, SEQUENCE = "worker", "replica", "stage", "sequence"
FACTORS = {cause: f"{cause}_factor" for cause in (WORKER, REPLICA, STAGE, SEQUENCE)}
"""Causes, and the columns of their factors."""

_CELL = ["rank", "step", "micro_batch"]
_FEW = 2
_WAY = pl.col("name").str.extract("^(forward|backward)")


@dataclass(frozen=True)
class Limits:
    """What counts as uneven."""

    correlation: float = limit(
        0.9, "of forward and backward times of micro-batches", "the study of stragglers that `slowdowns` quotes"
    )
    slow_ratio: float = limit(0.05, "of its stage's time, that a rank takes longer", "chosen by us: less is noise")
    steps_ratio: float = limit(
        1 / 3, "of the steps, that a rank is slow in", "chosen by us: less is another rank each time"
    )
    errors: float = limit(4.0, "standard errors", "chosen by us: of a thousand ranks, none is further off by chance")


@dataclass(frozen=True)
class Uneven:
    """The factors of each operation.

    Args:
        factors: The columns of `FACTORS`, a row for each operation; 1 where there is nothing to be said.
        correlation: How far backward passes are long where the forward pass of the micro-batch is: the median over the
            ranks; None if unknown.
    """

    factors: pl.DataFrame
    correlation: float | None


def uneven_work(operations: pl.DataFrame, limits: Limits = Limits()) -> Uneven:
    """Find the factors of operations.

    Args:
        operations: `rank`, `replica`, `stage` (both known), `step`, `kind`, `name`, `micro_batch`, `model_chunk` and
            `duration_ns`.
        limits: Limits.
    """
    every = operations.with_row_index("row")
    rows = _with_levels(every.filter(pl.col("kind") == COMPUTING).with_columns(pl.col("model_chunk").fill_null(0)))
    passes = rows.filter(_WAY.is_not_null() & pl.col("micro_batch").is_not_null() & (pl.col("level") > 0))
    cells = passes.group_by(*_CELL, "replica", maintain_order=True).agg(
        value=pl.col("duration_ns").sum() / pl.col("level").sum()
    )
    correlation = _correlation(passes)
    uneven = correlation is not None and correlation >= limits.correlation
    cells = _with_workers(_with_shared(cells, limits, uneven=uneven), limits)
    of_cell = (FACTORS[SEQUENCE], FACTORS[WORKER], FACTORS[REPLICA])
    slow = cells.group_by("rank").agg(
        slow=(pl.col(FACTORS[WORKER]) != 1).any(), all_slow=(pl.col(FACTORS[REPLICA]) != 1).any()
    )
    # What belongs to no micro-batch, such as the optimizer, need not be as slow as passes are.
    is_pass = pl.col(FACTORS[SEQUENCE]).is_not_null()
    own = pl.when(pl.col("level") > 0).then(pl.col("mean_ns") / pl.col("level")).otherwise(1.0)
    worker = pl.when(is_pass).then(FACTORS[WORKER]).when("slow").then(own)
    replica = pl.when(is_pass).then(FACTORS[REPLICA]).when(pl.col("all_slow") & ~pl.col("slow")).then(own)
    found = (
        rows.join(cells.select(*_CELL, *of_cell), on=_CELL, how="left")
        .join(slow, on="rank", how="left")
        .with_columns(worker.alias(FACTORS[WORKER]), replica.alias(FACTORS[REPLICA]))
        .select("row", *FACTORS.values())
    )
    factors = every.select("row").join(found, on="row", how="left", maintain_order="left")
    return Uneven(factors.select(pl.col(name).fill_null(1.0) for name in FACTORS.values()), correlation)


def _with_levels(rows: pl.DataFrame) -> pl.DataFrame:
    """What is usual on a stage (`level`), and how far that is from the mean over all."""
    same = ["name", "model_chunk", "stage"]
    means = rows.group_by(*same, "rank").agg(mean_ns=pl.col("duration_ns").mean())
    levels = means.group_by(same).agg(level=pl.col("mean_ns").quantile(0.5, "lower"))
    found = rows.join(means, on=[*same, "rank"], how="left", maintain_order="left").join(
        levels, on=same, how="left", maintain_order="left"
    )
    mean = pl.col("level").mean().over("name")
    return found.with_columns(pl.when(mean > 0).then(pl.col("level") / mean).otherwise(1.0).alias(FACTORS[STAGE]))


def _correlation(passes: pl.DataFrame) -> float | None:
    """Pearson's correlation of forward and backward times of micro-batches: within steps if they have several, as a
    device may be slow for whole steps."""
    ways = ("forward", "backward")
    both = passes.group_by(_CELL, maintain_order=True).agg(_length(way).alias(way) for way in ways)
    known = both.filter(pl.all_horizontal(pl.col(ways).is_finite()))
    if known.select((pl.len().over("rank", "step") > 1).mean()).item():
        known = known.with_columns(pl.col(ways) - pl.col(ways).mean().over("rank", "step"))
    by_rank = known.group_by("rank").agg(pl.corr(*ways).alias("correlation"), cells=pl.len())
    by_rank = by_rank.filter((pl.col("cells") > _FEW) & pl.col("correlation").is_finite())
    # Of few micro-batches, those of all ranks together show it.
    found = known.select(pl.corr(*ways)).item() if by_rank.is_empty() else by_rank["correlation"].median()
    if known.height <= 2 * _FEW or not isinstance(found, float) or not isfinite(found):
        return None
    return found


def _length(way: str) -> pl.Expr:
    own = pl.lit(way) == _WAY
    return pl.col("duration_ns").filter(own).sum() / pl.col("level").filter(own).sum()


def _with_shared(cells: pl.DataFrame, limits: Limits, *, uneven: bool) -> pl.DataFrame:
    """What the ranks of a replica have in common: in a micro-batch, if these are uneven, and in all of them."""
    ranks = pl.col("rank").n_unique().over("replica")
    shared = pl.col("value").quantile(0.5, "lower").over("replica", "step", "micro_batch")
    found = cells.with_columns(pl.when(ranks > 1).then(shared).otherwise("value").alias("shared"), ranks=ranks)
    always = pl.col("shared").mean().over("replica")
    # The spread of all replicas, as that of one is not known well from few micro-batches.
    error = (pl.col("shared") / always).std() / (pl.len().over("replica") / ranks).sqrt()
    is_slow = (always >= 1 + limits.slow_ratio) & (always - 1 > limits.errors * error.fill_null(0))
    found = found.with_columns(always=pl.when(is_slow).then(always).otherwise(1.0))
    own = pl.when(pl.lit(uneven)).then(pl.col("shared") / pl.col("always")).otherwise(1.0)
    return found.with_columns(
        pl.when(ranks > 1).then("always").otherwise(1.0).alias(FACTORS[REPLICA]), length=own
    ).with_columns((pl.col("length") / pl.col("length").mean()).alias(FACTORS[SEQUENCE]))


def _with_workers(cells: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """What is left of ranks that are slower than others of their stage: steadily, or in many steps."""
    rest = cells.with_columns(rest=pl.col("value") / (pl.col("length") * pl.col(FACTORS[REPLICA]))).with_columns(
        own=pl.col("rest").mean().over("rank", "step")
    )
    slow = pl.col("own") >= 1 + limits.slow_ratio
    error = pl.col("rest").std() / pl.len().sqrt()
    above = pl.col("rest").mean() - 1 > limits.errors * error.fill_null(0)
    ranks = rest.group_by("rank").agg(is_slow=(slow.mean() >= limits.steps_ratio) & above)
    if 2 * ranks["is_slow"].sum() > ranks.height:
        ranks = ranks.with_columns(is_slow=pl.lit(value=False))
    found = rest.join(ranks, on="rank", how="left", maintain_order="left")
    return found.with_columns(pl.when(pl.col("is_slow") & slow).then("own").otherwise(1.0).alias(FACTORS[WORKER]))
