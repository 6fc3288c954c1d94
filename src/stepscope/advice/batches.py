"""Batches that found their queue empty, but for the first, for which none can be ready."""

from __future__ import annotations

import polars as pl

FIRST = 1
"""`number` of the batch that starts the pipeline up."""


def empty_again(batches: pl.DataFrame) -> pl.DataFrame:
    """`rank` and `queue` of the queues that another batch than the first found empty."""
    empty = batches.filter((pl.col("queue_size") == 0) & (pl.col("number") > FIRST))
    return empty.select("rank", "queue").unique(maintain_order=True)
