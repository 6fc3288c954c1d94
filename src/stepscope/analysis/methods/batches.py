"""Reading a table a batch at a time, so that memory does not grow with the length of a recording."""

from __future__ import annotations

from collections.abc import Iterator

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
