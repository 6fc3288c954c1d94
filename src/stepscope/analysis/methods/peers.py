"""A rank's peers: the other ranks with which its rows are compared."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def counts(slow: Sequence[int]) -> pl.Expr:
    """Rows (with `rank` and `calls`) of ranks that are an example for others: they are not slow, and have calls."""
    return ~pl.col("rank").is_in(list(slow)) & (pl.col("calls") > 0)


def peers(slow: Sequence[int], over: Sequence[str]) -> pl.Expr:
    """Number of other ranks with which a row is compared."""
    example = counts(slow)
    return example.sum().over(over) - example.cast(pl.Int32)


def typical(column: str, slow: Sequence[int], over: Sequence[str]) -> pl.Expr:
    """The value of the median rank that counts; of two ranks, that of the other. Null without peers."""
    value, example = pl.col(column), counts(slow)
    number = example.sum().over(over)
    middle = value.filter(example).median().over(over)
    other = value.filter(example).sum().over(over) - value
    has_peers = number - example.cast(pl.Int32) > 0
    return pl.when((number == 2) & example).then(other).when(has_peers).then(middle).cast(pl.Float64)
