"""Numbers of arrows between ranges: the same number on both ends, and on nothing else of any rank."""

from __future__ import annotations

import polars as pl

_SPREAD = 0x9E3779B97F4A7C15
_BY_RANK = 0xC2B2AE3D27D4EB4F
"""Odd numbers far from small multiples of one another: numbers of ranks that count from 0 alike do not meet."""


def launch_flow(where: pl.Expr | None = None) -> pl.Expr:
    """The arrow from a launch to its device work, by `correlation`: one tail and one head, the first of several.

    Args:
        where: The rows that may have it.
    """
    arrow = numbered(pl.col("correlation"), 1)
    arrow = arrow if where is None else pl.when(where).then(arrow)
    return pl.when(arrow.is_first_distinct()).then(arrow)


def numbered(value: pl.Expr, kind: int) -> pl.Expr:
    """The arrow of a kind with this number on a rank; null without a number.

    Args:
        value: Any integer.
        kind: Arrows of different kinds do not meet either.
    """
    rank = pl.col("rank").cast(pl.Int64).reinterpret(signed=False) + 1
    number = value.cast(pl.Int64).reinterpret(signed=False)
    return (number * pl.lit(_SPREAD, pl.UInt64)) ^ (rank * pl.lit(_BY_RANK, pl.UInt64) + pl.lit(kind, pl.UInt64))
