"""How full the queues between dataset, host and device were, and what each batch cost."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

DATA_QUEUE = "get_next"
"""The queue on the device, seen when a step takes its batch from it."""

HOST_QUEUES = ("device_queue", "dataset_iterator")
"""The last queue of the dataset pipeline: seen when a batch is sent to the device, or without that, when the training
loop takes it."""

QUEUES = (DATA_QUEUE, *HOST_QUEUES)

FIRST = 1
"""`number` of the batch that starts the pipeline up."""


@analysis("rank", together=True)
def input_batches(input_pipeline: pl.LazyFrame) -> pl.DataFrame:
    """List the batches that went through each queue.

    Returns:
        `rank`, `queue` (one of `QUEUES`), `batch` (as the source counts), `number` (from 1), `step` (null where it is
        not known), `time_ns`, `queue_size` and `queue_capacity` when the batch was taken, `get_ns` (waiting for the
        pipeline), `push_ns` (handing on), `duration_ns` (the whole batch).

    Raises:
        Unavailable: If no queue was recorded.
    """
    columns = ("step", "time_ns", "queue_size", "queue_capacity", "get_ns", "push_ns", "duration_ns")
    found = (
        input_pipeline.filter(pl.col("operator").is_in(QUEUES))
        .sort("rank", "operator", "batch", "time_ns", nulls_last=True, maintain_order=True)
        .select(
            "rank",
            "batch",
            *columns,
            queue=pl.col("operator"),
            number=pl.int_range(1, pl.len() + 1).over("rank", "operator"),
        )
        .select("rank", "queue", "batch", "number", *columns)
        .collect()
    )
    if found.is_empty():
        raise Unavailable("no queue between dataset and device was recorded")
    return found


@analysis("rank", together=True)
def input_queues(input_batches: pl.DataFrame) -> pl.DataFrame:
    """Sum up each queue: how often it was empty or full, and what a batch cost on average.

    Returns:
        `rank`, `queue`, `batches`, `empty` and `full` (batches that found it so; null where its size, or its room, is
        not known), `empty_later` (of the empty ones all but the first batch, for which none can be ready),
        `empty_ratio`, `full_ratio`, `queue_capacity`, `mean_size`, and of the costs of a batch
        `mean_total_ns`, `mean_get_ns`, `mean_push_ns`, with `total_ns`, `get_ns`, `push_ns` their sums;
        `interval_ns` (mean time from batch to batch; null for a single one).
    """
    size, room = pl.col("queue_size"), pl.col("queue_capacity")
    known = size.count()
    empty = pl.when(known > 0).then((size == 0).sum().cast(pl.Int64))
    full = pl.when((size.is_not_null() & room.is_not_null()).any()).then((size >= room).sum().cast(pl.Int64))
    span = pl.col("time_ns").max() - pl.col("time_ns").min()
    return (
        input_batches.group_by("rank", "queue", maintain_order=True)
        .agg(
            batches=pl.len().cast(pl.Int64),
            empty=empty,
            empty_later=pl.when(known > 0).then(((size == 0) & (pl.col("number") > FIRST)).sum().cast(pl.Int64)),
            full=full,
            empty_ratio=empty / known,
            full_ratio=full / known,
            queue_capacity=room.max(),
            mean_size=size.mean(),
            mean_total_ns=_mean("duration_ns"),
            mean_get_ns=_mean("get_ns"),
            mean_push_ns=_mean("push_ns"),
            total_ns=_sum("duration_ns"),
            get_ns=_sum("get_ns"),
            push_ns=_sum("push_ns"),
            interval_ns=pl.when(pl.len() > 1).then(rounded(span / pl.max_horizontal(pl.len() - 1, 1))),
        )
        .sort("rank", pl.col("queue").replace_strict({name: n for n, name in enumerate(QUEUES)}, default=9))
    )


def _mean(column: str) -> pl.Expr:
    return pl.col(column).mean()


def _sum(column: str) -> pl.Expr:
    """The sum; null where nothing is known."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum())
