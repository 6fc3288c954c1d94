"""What is rarely asked of a trace, in tables apart: names of threads, waits of streams, resources of kernels."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Events
from stepscope.tables import KERNEL_RESOURCES, SYNCHRONIZATIONS, THREADS

_SYNC = "cuda_sync"
_RESOURCES = ("blocks_per_sm", "warps_per_sm", "registers_per_thread", "shared_memory_bytes")


def write_threads(events: Events, sink: Sink) -> None:
    """Write what the trace calls processes and threads; of several names of one, the last counts."""
    labels = events.labels()
    if labels is None:
        return
    index = pl.col("sort_index").cast(pl.Int64, strict=False)
    kinds = {
        "thread_name": "label",
        "thread_sort_index": index,
        "process_name": "label",
        "process_labels": "labels",
        "process_sort_index": index,
    }
    said = labels.with_columns(pl.when(pl.col("name") == kind).then(value).alias(kind) for kind, value in kinds.items())

    def of(what: str, key: list[str]) -> pl.DataFrame:
        last = [pl.col(kind).drop_nulls().last() for kind in kinds if kind.startswith(what)]
        return said.filter(pl.col("name").str.starts_with(what)).group_by(key, maintain_order=True).agg(last)

    threads, processes = of("thread", ["process", "thread"]), of("process", ["process"])
    rows = threads.join(processes, on="process", how="full", coalesce=True, nulls_equal=True)
    sink.write(THREADS, rows.sort("process", "thread"))


def write_waits(rows: pl.DataFrame, sink: Sink) -> None:
    """Write the waits among ranges of no other class, with their category as it was recorded."""
    waits = rows.filter(pl.col("category").str.to_lowercase() == _SYNC)
    if waits.height:
        waited = [
            pl.when(pl.col(name) >= 0).then(name).alias(name)
            for name in ("waited_stream", "waited_correlation", "waited_event")
        ]
        own = {name: f"sync_{name}" for name in ("device", "stream", "correlation")}
        sink.write(SYNCHRONIZATIONS, waits.select("slice", "start_ns", "duration_ns", "name", *waited, **own))


def write_resources(work: pl.DataFrame, sink: Sink) -> None:
    """Write what each kernel used of its multiprocessors, if that is recorded."""
    known = [name for name in _RESOURCES if work[name].null_count() < work.height]
    if known:
        rows = work.select("kernel", *known)
        sink.write(KERNEL_RESOURCES, rows.filter(pl.any_horizontal(pl.col(known).is_not_null())))
