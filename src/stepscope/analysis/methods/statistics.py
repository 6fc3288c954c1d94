"""Statistics that several analyses share: of durations, named the same in every table; robust ones; sums by group."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

ROWS_AT_ONCE = 1_000_000
"""About as many rows are grouped at a time; percentiles need them all in memory, some 100 bytes each."""


def duration_statistics(column: str = "duration_ns") -> list[pl.Expr]:
    """Aggregations of a duration: `count`, `total_ns`, `mean_ns`, `min_ns`, `median_ns`, `p95_ns`, `max_ns`.

    Percentiles are the observed value at that rank (no interpolation).
    """
    value = pl.col(column)
    return [
        pl.len().cast(pl.Int64).alias("count"),
        value.sum().alias("total_ns"),
        rounded(value.mean()).alias("mean_ns"),
        value.min().alias("min_ns"),
        value.quantile(0.5, "lower").cast(pl.Int64).alias("median_ns"),
        value.quantile(0.95, "higher").cast(pl.Int64).alias("p95_ns"),
        value.max().alias("max_ns"),
    ]


def share(column: str = "total_ns") -> pl.Expr:
    """Share of each row in the sum of its rank, 0 to 1; 0 where the sum is 0."""
    total = pl.col(column).sum().over("rank")
    # Polars divides by one number with its reciprocal, and by several exactly: with the reciprocal, a rank's shares
    # are the same to the last digit whichever ranks it is asked with.
    return pl.when(total > 0).then(pl.col(column) * (1 / total)).otherwise(0.0).alias("share_ratio")


def rounded(value: pl.Expr) -> pl.Expr:
    """The nearest whole number; null where there is none, e.g. for the mean of what never ran."""
    return value.round().cast(pl.Int64, strict=False)


def sum_known(column: str) -> pl.Expr:
    """Sum of what is known; null where nothing is."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)


def median(frame: pl.DataFrame, value: pl.Expr) -> float:
    """Median of an expression; 0 where there is nothing."""
    return float(frame.select(value.median()).item() or 0)


def log_score(column: str, over: str | list[str], floor: float) -> pl.Expr:
    """How many robust deviations the logarithm of a value lies above the median of its class.

    Args:
        column: Values above 0.
        over: Columns that make a class.
        floor: Relative spread below which differences are noise.
    """
    log = pl.col(column).log()
    off = log - log.median().over(over)
    return off / pl.max_horizontal(off.abs().median().over(over) * MAD_TO_SIGMA, pl.lit(floor))


def row_count(table: pl.LazyFrame) -> int:
    """How many rows a table has."""
    return int(table.select(pl.len()).collect().item())


def grouped(rows: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[pl.Expr], count: int) -> pl.DataFrame:
    """Sum up rows by `keys`; groups of a very large table are made a part of them at a time.

    Args:
        rows: The rows.
        keys: Columns that make a group.
        statistics: Aggregations.
        count: About how many rows there are.
    """
    parts = 1 + count // ROWS_AT_ONCE
    if parts == 1:
        return rows.group_by(keys).agg(statistics).collect()
    part = pl.struct(keys).hash(seed=0) % parts
    return pl.concat([rows.filter(part == n).group_by(keys).agg(statistics).collect() for n in range(parts)])
