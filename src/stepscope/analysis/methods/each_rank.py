"""One rank after the other, for what can only be computed of one rank: several ranks' tables are collected once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl


def each_rank(ranks: Sequence[int], *tables: pl.LazyFrame | pl.DataFrame | None) -> Iterator[tuple[int, list[Any]]]:
    """Some ranks, each with its rows of some tables.

    Args:
        ranks: The ranks, in order.
        tables: Tables and answers of these ranks. They are given as frames; None remains None.
    """
    rows = [table.collect() if isinstance(table, pl.LazyFrame) else table for table in tables]
    if len(ranks) == 1:
        yield ranks[0], rows
        return
    parts = [None if table is None else table.partition_by("rank", as_dict=True) for table in rows]
    for rank in ranks:
        yield (
            rank,
            [
                None if part is None or table is None else part.get((rank,), table.clear())
                for part, table in zip(parts, rows, strict=True)
            ],
        )
