"""The statistics of a duration column, named the same in every table."""

from __future__ import annotations

import polars as pl


def duration_statistics(column: str = "duration_ns") -> list[pl.Expr]:
    """Aggregations of a duration: `count`, `total_ns`, `mean_ns`, `min_ns`, `median_ns`, `p95_ns`, `max_ns`.

    Percentiles are the observed value at that rank (no interpolation).
    """
    value = pl.col(column)
    return [
        pl.len().cast(pl.Int64).alias("count"),
        value.sum().alias("total_ns"),
        value.mean().round().cast(pl.Int64).alias("mean_ns"),
        value.min().alias("min_ns"),
        value.quantile(0.5, "lower").cast(pl.Int64).alias("median_ns"),
        value.quantile(0.95, "higher").cast(pl.Int64).alias("p95_ns"),
        value.max().alias("max_ns"),
    ]


def share(column: str = "total_ns") -> pl.Expr:
    """Share of each row in the sum of its rank, 0 to 1; 0 where the sum is 0."""
    total = pl.col(column).sum().over("rank")
    return pl.when(total > 0).then(pl.col(column) / total).otherwise(0.0).alias("share_ratio")


def sum_known(column: str) -> pl.Expr:
    """Sum of what is known; null where nothing is."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)
