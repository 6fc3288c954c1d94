"""Summing up rows by group in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

ROWS_AT_ONCE = 1_000_000
"""About as many rows are grouped at a time; percentiles need them all in memory, some 100 bytes each."""


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
