"""Statistics that several analyses share: duration statistics with the same names everywhere, robust scores, sums by
group, labels by condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.analysis.registry import ranks_of

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

ROWS_AT_ONCE = 2_000_000
"""Rows grouped at a time; percentiles need all of them in memory, about 100 bytes each."""


def duration_sums(column: str = "duration_ns") -> list[pl.Expr]:
    """The first aggregations of `duration_statistics`: `count`, `total_ns`, `mean_ns`."""
    value = pl.col(column)
    return [
        pl.len().cast(pl.Int64).alias("count"),
        value.sum().alias("total_ns"),
        rounded(value.mean()).alias("mean_ns"),
    ]


def duration_statistics(column: str = "duration_ns") -> list[pl.Expr]:
    """Aggregations of a duration: `count`, `total_ns`, `mean_ns`, `min_ns`, `median_ns`, `p95_ns`, `max_ns`.

    Percentiles are the observed value at that rank (no interpolation).
    """
    value = pl.col(column)
    return [
        *duration_sums(column),
        value.min().alias("min_ns"),
        value.quantile(0.5, "lower").cast(pl.Int64).alias("median_ns"),
        value.quantile(0.95, "higher").cast(pl.Int64).alias("p95_ns"),
        value.max().alias("max_ns"),
    ]


def share(column: str = "total_ns") -> pl.Expr:
    """Share of each row in the sum of its rank, 0 to 1; 0 if the sum is 0."""
    return share_of(pl.col(column), "rank").alias("share_ratio")


def share_of(value: pl.Expr, *over: str, default: float | None = 0.0) -> pl.Expr:
    """Share of each value in the sum of its group, 0 to 1; the default if the sum is 0."""
    total = value.sum().over(over)
    # Polars divides by a scalar with its reciprocal, but by a column exactly. With the reciprocal, a rank's shares are
    # the same to the last digit whichever ranks are computed together.
    return pl.when(total > 0).then(value * (1 / total)).otherwise(default)


def per_second(value: str) -> pl.Expr:
    """Rate of what each of `count` calls did, which took `total_ns` together; with the reciprocal, as in `share_of`."""
    per_s = pl.when(pl.col("total_ns") > 0).then(1 / pl.col("total_ns")) * pl.col("count") * 1e9
    return pl.col(value) * per_s


def first_label(cases: Mapping[str, pl.Expr | str], otherwise: str | None = None) -> pl.Expr:
    """The label of the first condition (or Boolean column) that holds, or `otherwise`."""
    labels = [pl.when(condition).then(pl.lit(label)) for label, condition in cases.items()]
    return pl.coalesce(*labels, pl.lit(otherwise, pl.String))


def rounded(value: pl.Expr) -> pl.Expr:
    """The nearest integer; null if undefined, e.g. for the mean of no calls."""
    return value.round().cast(pl.Int64, strict=False)


def sum_known(column: str) -> pl.Expr:
    """Sum of the known values; null if none is known."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)


def median(frame: pl.DataFrame, value: pl.Expr) -> float:
    """Median of an expression; 0 if there are no values."""
    return float(frame.select(value.median()).item() or 0)


def log_score(column: str, over: str | list[str], floor: float) -> pl.Expr:
    """How many robust deviations the logarithm of a value is above the median of its class (`over`); a relative spread
    below `floor` is noise."""
    log = pl.col(column).log()
    off = log - log.median().over(over)
    return off / pl.max_horizontal(off.abs().median().over(over) * MAD_TO_SIGMA, pl.lit(floor))


def row_count(table: pl.LazyFrame) -> int:
    """How many rows a table has."""
    return int(table.select(pl.len()).collect().item())


def grouped(rows: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[pl.Expr], count: int) -> pl.DataFrame:
    """Aggregate rows by `keys`, the first of them the rank, in parts if the table is very large (`count`, about)."""
    rank, *others = keys
    if ranks_of(rows)[1:]:
        own, of_rank = keys, []
    else:  # a key less takes a quarter of the time less
        own, of_rank = others, [pl.col(rank).first()]
    parts = 1 + count // ROWS_AT_ONCE
    part = pl.struct(others).hash(seed=0) % parts
    some = [rows] if parts == 1 else [rows.filter(part == number) for number in range(parts)]
    found = [one.group_by(own).agg(*of_rank, *statistics).collect(engine="streaming") for one in some]
    return pl.concat(found).select(*keys, pl.exclude(keys))
