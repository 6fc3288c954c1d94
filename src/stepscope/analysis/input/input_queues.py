"""How full the queues between dataset, host and device were, and how long each batch took."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import rounded, sum_known
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

DATA_QUEUE = "get_next"
"""The queue on the device, recorded when a step takes its batch from it."""

HOST_QUEUES = ("device_queue", "dataset_iterator")
"""The last queue of the dataset pipeline, recorded when a batch is sent to the device, or else when the training loop
takes it."""

QUEUES = (DATA_QUEUE, *HOST_QUEUES)

FIRST = 1
"""`number` of the first batch, for which the pipeline has to start up."""


NO_QUEUE = "no queue between dataset and device was recorded"


@analysis(
    "rank",
    columns(
        "rank queue",
        Column("batch", "int64", "Number of the batch as recorded."),
        Column("number", "int64", "Number of the batch in the queue, from 1.", importance=15),
        "step",
        meaning("time_ns", "When the batch was taken."),
        "queue_size queue_capacity",
        meaning("get_ns", "Time spent waiting for the dataset pipeline; null if not recorded."),
        meaning("push_ns", "Time spent passing the batch on; null if not recorded."),
        meaning("duration_ns", "Total time of the batch."),
        keep="queue batch",
    ),
    together=True,
    nothing=NO_QUEUE,
    across_steps=True,
)
def input_batches(input_pipeline: pl.LazyFrame) -> pl.DataFrame:
    """List the batches that went through each queue, queue by queue.

    Raises:
        Unavailable: If no queue was recorded.
    """
    columns = ("step", "time_ns", "queue_size", "queue_capacity", "get_ns", "push_ns", "duration_ns")
    found = (
        input_pipeline.filter(pl.col("operator").is_in(QUEUES))
        .sort("rank", "operator", "batch", "time_ns", nulls_last=True, maintain_order=True)
        .with_columns(queue="operator", number=pl.int_range(1, pl.len() + 1).over("rank", "operator"))
        .select("rank", "queue", "batch", "number", *columns)
        .collect()
    )
    if found.is_empty():
        raise Unavailable(NO_QUEUE)
    return found


@analysis(
    "rank",
    columns(
        "rank queue",
        meaning("batches", "Number of batches."),
        "empty",
        Column("empty_later", "int64", "`empty` without the first batch, which can never be ready in advance."),
        "full empty_ratio",
        Column("full_ratio", "float64", "Share of batches that found the queue full.", importance=26),
        "queue_capacity mean_size mean_total_ns",
        Column("mean_get_ns", "float64", "Mean of `get_ns` of a batch."),
        Column("mean_push_ns", "float64", "Mean of `push_ns` of a batch.", importance=25),
        meaning("total_ns", "Total time of all batches."),
        "get_ns push_ns interval_ns",
        keep="queue empty_ratio mean_total_ns batches empty mean_size queue_capacity",
    ),
    together=True,
)
def input_queues(input_batches: pl.DataFrame) -> pl.DataFrame:
    """Summarise each queue: how often it was empty or full, and how long a batch took on average."""
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
            mean_total_ns=pl.col("duration_ns").mean(),
            mean_get_ns=pl.col("get_ns").mean(),
            mean_push_ns=pl.col("push_ns").mean(),
            total_ns=sum_known("duration_ns"),
            get_ns=sum_known("get_ns"),
            push_ns=sum_known("push_ns"),
            interval_ns=pl.when(pl.len() > 1).then(rounded(span / pl.max_horizontal(pl.len() - 1, 1))),
        )
        .sort("rank", pl.col("queue").replace_strict({name: n for n, name in enumerate(QUEUES)}, default=9))
    )
