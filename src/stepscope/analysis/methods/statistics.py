"""Statistics that several analyses share: duration statistics with the same names everywhere, robust scores, sums by
group, labels by condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import polars as pl

from stepscope.analysis.methods.ordering import is_alike

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

ROWS_AT_ONCE = 2_000_000
"""Rows of which percentiles are found at a time, unless a group has more."""


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


def grouped(batches: Iterable[pl.DataFrame], keys: Sequence[str], *sums: str) -> pl.DataFrame:
    """Duration statistics by `keys`, and sums of other columns, in any order.

    Args:
        batches: The rows: at least one frame.
        keys: Columns whose values, perhaps null, make a group; the first is the rank.
        *sums: Columns to sum.
    """
    summed = [pl.col(name).sum() for name in sums]
    rest = iter(batches)
    first = next(rest)
    if (second := next(rest, None)) is None:
        return grouped_in_memory(first, keys, [*duration_statistics(), *summed])
    # percentiles need all durations, eight bytes each; of the rest, sums will do
    lists = [grouped_in_memory(rows, keys, [pl.col("duration_ns"), *summed]) for rows in chain([first, second], rest)]
    parts = pl.concat(lists).with_columns(rows=pl.col("duration_ns").list.len().cast(pl.Int64))
    groups = parts.group_by(keys).agg(pl.col("rows").sum(), *summed).with_row_index("group")
    turns = groups.select(*keys, "group", turn=pl.col("rows").cum_sum() // ROWS_AT_ONCE)
    numbers = parts.select(keys).join(turns, on=keys, how="left", nulls_equal=True, maintain_order="left")
    durations = parts.select("duration_ns", numbers["group"])
    del lists, parts
    found = [
        durations.filter(numbers["turn"] == turn).explode("duration_ns").group_by("group").agg(duration_statistics())
        for turn in turns["turn"].unique()
    ]
    return groups.join(pl.concat(found), on="group").select(*keys, pl.exclude("group", "rows", *keys, *sums), *sums)


def grouped_in_memory(rows: pl.DataFrame, keys: Sequence[str], aggregations: Sequence[pl.Expr]) -> pl.DataFrame:
    """Aggregate rows by `keys`, in the order of their first rows; those that are alike in all rows, as the rank often
    is, are not compared, which takes most of the time."""
    varying = [key for key in keys if not is_alike(rows[key])] or [*keys[:1]]
    others = [key for key in keys if key not in varying]
    found = rows.group_by(varying, maintain_order=True).agg(pl.col(others).first(), *aggregations)
    return found.select(*keys, pl.exclude(keys))
