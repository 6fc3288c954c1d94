"""Reading a table a batch at a time, so that memory does not grow with the length of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import polars as pl

BATCH_ROWS = 200_000
"""Rows of a few columns in some tens of MB: more take more memory, fewer take more time."""


def batches(table: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a table in order, `BATCH_ROWS` at a time; at least one frame, which may be empty."""
    if not hasattr(table, "collect_batches"):  # versions of Polars before 1.34
        yield table.collect()
        return
    empty = True
    for batch in table.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"):
        empty = False
        yield batch
    if empty:
        yield table.head(0).collect()


def batches_by_rank(table: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a table of ranks one after the other, about `BATCH_ROWS` at a time, each batch with all rows of its
    ranks; at least one frame, which may be empty."""
    held: list[pl.DataFrame] = []
    for batch in batches(table):
        held.append(batch)
        first, last = held[0]["rank"], batch["rank"]
        if first.n_unique() == last.n_unique() == 1 and first[0] == last[0]:  # there may be more of the same rank
            continue
        rows = pl.concat(held)
        is_last = rows["rank"].is_in(rows["rank"].tail(1).implode())
        whole = rows.filter(~is_last)
        if whole.height:
            yield whole
        held = [rows.filter(is_last)]
    yield pl.concat(held)


def batches_by_time(table: pl.LazyFrame, column: str) -> Iterator[pl.DataFrame]:
    """The rows of a table, about `BATCH_ROWS` at a time, each batch with later times than the one before; at least one
    frame, which may be empty. Rows of one batch are in the order of the table.

    Args:
        table: Rows of which only those of one batch are in memory, so its query is run for each of them.
        column: The time, never null.
    """
    times = table.select(column).collect().to_series()
    if len(times) <= BATCH_ROWS:
        yield table.collect()
        return
    cuts = times.sort().gather_every(BATCH_ROWS).unique(maintain_order=True).to_list()
    del times
    for start, end in zip_longest(cuts, cuts[1:]):
        is_inside = pl.col(column) >= start
        yield table.filter(is_inside if end is None else is_inside & (pl.col(column) < end)).collect()
