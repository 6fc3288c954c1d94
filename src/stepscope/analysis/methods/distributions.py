"""Statistics of a duration by group, exact although the durations may be too many to hold: how many, how long in all,
mean and deviation, shortest, quartiles, longest; and over all ranks, on which rank the shortest and the longest are.

Percentiles need the durations themselves. They are found in two passes, whose memory depends on the number of groups
and not of rows: the first counts durations by size class, the second those within the classes in which percentiles
lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.statistics import rounded
from stepscope.tables.base import Column

CLASSES_PER_DOUBLING = 64
"""Size classes between a duration and its double: about 1 % wide, so that a class of durations of 100 us has no more
than a thousand different ones."""

_NUMBER = pl.col("number")
PERCENTILES = {
    **{name: (_NUMBER * quarters + 3) // 4 for name, quarters in (("q1_ns", 1), ("median_ns", 2), ("q3_ns", 3))},
    "p95_ns": ((_NUMBER - 1) * 19 + 19) // 20 + 1,
}
"""Percentiles, and the place of each, from 1, among a `number` of durations in order. Each is an observed value; of the
two around a quartile it is the lower one, of those around the 95th percentile the higher one."""

STATISTICS = columns(
    "count total_ns mean_ns",
    Column("std_ns", "int64", "Standard deviation (of a sample); null for a single call.", importance=32),
    "min_ns",
    Column("q1_ns", "int64", "First quartile (an observed value).", importance=20),
    "median_ns",
    Column("q3_ns", "int64", "Third quartile (an observed value).", importance=21),
    "p95_ns max_ns",
)
"""The columns of `distributions`."""

OVER_RANKS = columns(
    Column("ranks", "int32", "Number of ranks that have any.", importance=38),
    Column("min_rank", "int32", "Rank of the shortest; of several, the lowest.", importance=23),
    Column("max_rank", "int32", "Rank of the longest; of several, the lowest.", importance=37),
)
"""The columns that `distributions_over_ranks` adds."""

_VALUE, _CLASS, _ROWS = "duration_ns", "class", "rows"


def distributions(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The `STATISTICS` of each group, in any order.

    Args:
        rows: The keys, and `duration_ns`. Read twice.
        keys: Columns whose values, perhaps null, make a group.
    """
    classed = rows.select(*keys, _VALUE).with_columns(
        ((pl.col(_VALUE).clip(0) + 1).log(2) * CLASSES_PER_DOUBLING).floor().cast(pl.Int32).alias(_CLASS)
    )
    value = pl.col(_VALUE)
    counts = (
        classed.group_by(*keys, _CLASS)
        .agg(
            rows=pl.len().cast(pl.Int64),
            total_ns=value.sum(),
            min_ns=value.min(),
            max_ns=value.max(),
            class_mean=value.mean(),
            class_variance=value.var(ddof=0).fill_null(0.0),
        )
        .collect(engine="streaming")
        .sort(*keys, _CLASS)
    )
    mean = pl.col("total_ns").sum() / pl.col(_ROWS).sum()
    squares = pl.col(_ROWS) * (pl.col("class_variance") + (pl.col("class_mean") - mean) ** 2)
    freedom = pl.col(_ROWS).sum() - 1
    sums = counts.group_by(keys, maintain_order=True).agg(
        pl.col(_ROWS).sum().alias("count"),
        pl.col("total_ns").sum(),
        mean_ns=rounded(mean),
        std_ns=rounded(pl.when(freedom > 0).then((squares.sum() / freedom).sqrt())),
        min_ns=pl.col("min_ns").min(),
        max_ns=pl.col("max_ns").max(),
    )
    percentiles = _percentiles(classed, counts.select(*keys, _CLASS, _ROWS), keys)
    found = sums.join(percentiles, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return found.select(*keys, *(column.name for column in STATISTICS))


def distributions_over_ranks(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The statistics of each group over all ranks, and the columns of `OVER_RANKS`, in any order.

    Args:
        rows: `rank`, the keys, and `duration_ns`. Read three times.
        keys: Columns whose values, perhaps null, make a group; not the rank.
    """
    by_rank = rows.group_by(*keys, "rank").agg(least=pl.col(_VALUE).min(), most=pl.col(_VALUE).max())
    extremes = by_rank.collect(engine="streaming").sort(*keys, "rank").group_by(keys, maintain_order=True).agg(
        ranks=pl.len().cast(pl.Int32),
        min_rank=pl.col("rank").get(pl.col("least").arg_min()),
        max_rank=pl.col("rank").get(pl.col("most").arg_max()),
    )  # fmt: skip
    return distributions(rows, keys).join(extremes, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _percentiles(classed: pl.LazyFrame, counts: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The percentiles of each group: the keys and `PERCENTILES`.

    Args:
        classed: The durations with their class.
        counts: Number of `rows` by group and class, in order of the class.
        keys: The keys of a group.
    """
    number, until = pl.col(_ROWS).sum().over(keys), pl.col(_ROWS).cum_sum().over(keys)
    placed = counts.with_columns(until=until, before=until - pl.col(_ROWS), number=number)
    holds = [((pl.col("before") < nth) & (nth <= pl.col("until"))).alias(name) for name, nth in PERCENTILES.items()]
    wanted = placed.select(*keys, _CLASS, "before", "number", *holds).filter(pl.any_horizontal(*PERCENTILES))
    of_class = [*keys, _CLASS]
    values = (
        classed.join(wanted.select(of_class).lazy(), on=of_class, how="semi", nulls_equal=True)
        .group_by(*of_class, _VALUE)
        .agg(rows=pl.len().cast(pl.Int64))
        .collect(engine="streaming")
        .sort(*of_class, _VALUE)
        .join(wanted, on=of_class, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(until=pl.col("before") + pl.col(_ROWS).cum_sum().over(of_class))
    )
    return values.group_by(keys, maintain_order=True).agg(_found())


def _found() -> Iterator[pl.Expr]:
    """The first value, in order, up to which there are enough."""
    for name, nth in PERCENTILES.items():
        yield pl.col(_VALUE).filter(pl.col(name) & (pl.col("until") >= nth)).first().alias(name)
