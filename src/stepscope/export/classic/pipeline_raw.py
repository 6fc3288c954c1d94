"""`minddata_pipeline_raw`: the input pipeline as a tree, with the queue behind each operator.

The pipeline is the one that MindData recorded, else that of a `DataLoader` in MindData's format: the loader with its
workers on top of the data set.

MindData samples queues at intervals. Here the queue of finished batches was sampled whenever the loop took a batch, so
the sampling interval is the mean time between batches. Workers read samples and make batches of them in one go, so data
set and loader share one queue. A loader without workers has no queue, and none is exported: readers would take an empty
one for a slow pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.export.classic.framework_files import ITERATOR, PIPELINE
from stepscope.export.formatting import csv_text
from stepscope.export.rank_export import RankExport
from stepscope.json_files import read_object
from stepscope.sources.minddata.pipeline import Operator, listed_operators

HEADER = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id"
)

LOOP, LOADER, DATASET = 0, 1, 2
"""Ids of the three stages: the training loop takes from the loader, the loader reads the data set."""


def write_loader_pipeline(export: RankExport) -> None:
    """Write the iterator's times and the pipeline of the loader that gave most batches."""
    name = f"{PIPELINE}_{export.rank}.json"
    if name in export.written:
        return
    batches = export.within(export.rows("input_pipeline").drop_nulls(["time_ns", "batch"]), "time_ns")
    if batches.is_empty():
        return  # `write_pipeline_raw` notes why there is none
    loaders = batches["operator"].value_counts(sort=True)["operator"].to_list()
    if len(loaders) > 1:
        export.leave_out(f"{name} (loaders)", f"only {loaders[0]!r}, not {len(loaders) - 1} others with fewer batches")
    queued = pl.col("queue_size").is_not_null() & (pl.col("queue_capacity") > 0)
    mine = batches.filter(pl.col("operator").eq_missing(loaders[0]) & queued).sort("time_ns", maintain_order=True)
    if mine.is_empty():
        reason = f"{loaders[0]!r} has no queue of batches: it has no workers, or the queue was not seen"
        export.leave_out(f"{ITERATOR}_{export.rank}.txt", reason)
        export.leave_out(f"{name} (operators)", reason)
        return
    export.write(f"{ITERATOR}_{export.rank}.txt", _records(mine))
    export.write_json(name, _pipeline(mine))


def _records(batches: pl.DataFrame) -> Iterator[str]:
    """Four lines a batch: time of pushing it on (none here), of the batch, of the pipeline; the queue. In ms."""
    for number, row in enumerate(batches.iter_rows(named=True), 1):
        when, wait = row["time_ns"] // 1_000_000, round((row["duration_ns"] or 0) / 1e6)
        capacity, size = row["queue_capacity"], row["queue_size"]
        yield f"0 1 {number} 0 {when}\n0 2 {number} {wait} {when}\n0 0 {number} {wait} {when}\n"
        yield f"1 {capacity} {number} {size} {when}\n"


def _pipeline(batches: pl.DataFrame) -> dict[str, object]:
    sizes = batches["queue_size"].to_list()
    capacity = int(batches["queue_capacity"].max())  # type: ignore[arg-type]
    workers = max(int(batches["workers"].fill_null(0).max() or 0), 1)  # type: ignore[arg-type]
    span_ns = int(batches["time_ns"][-1]) - int(batches["time_ns"][0])
    interval = max(round(span_ns / max(batches.height - 1, 1) / 1e6), 1)
    queue = {"output_queue": {"length": capacity, "size": sizes}}
    return {
        "op_info": [
            {"children": [LOADER], "metrics": None, "num_workers": 1, "op_id": LOOP, "op_type": "EpochCtrlOp"},
            {"children": [DATASET], "metrics": queue, "num_workers": workers, "op_id": LOADER, "op_type": "BatchOp"},
            {"metrics": queue, "num_workers": workers, "op_id": DATASET, "op_type": "GeneratorOp"},
        ],
        "sampling_interval": interval,
    }


def read_pipeline(export: RankExport) -> list[Operator]:
    """The pipeline as `pipeline_profiling` of this export has it, from the root to the leaves.

    Raises:
        UnreadableInput: If the file is damaged.
    """
    path = export.directory / f"{PIPELINE}_{export.rank}.json"
    if path.name not in export.written:
        return []
    operators = {operator.number: operator for operator in listed_operators(read_object(path))[0]}
    order: list[Operator] = []
    open_ = sorted((number for number, operator in operators.items() if operator.parent is None), reverse=True)
    while open_:
        number = open_.pop()
        if number in operators:  # a damaged tree may name an operator twice
            order.append(operators.pop(number))
            open_.extend(reversed(order[-1].children))
    return order


def write_pipeline_raw(export: RankExport) -> None:
    """Write it if a pipeline was recorded."""
    name = f"minddata_pipeline_raw_{export.rank}.csv"
    if operators := read_pipeline(export):
        export.write(name, csv_text(HEADER, map(_row, operators)))
    else:
        ours = "data_process is off, or no loader is known"
        nothing = export.because("no batches and no pipeline were recorded", ours)
        export.leave_out(name, export.left_out.get(f"{PIPELINE}_{export.rank}.json (operators)", nothing))


def _row(operator: Operator) -> tuple[object, ...]:
    queue: tuple[object, ...] = (None, None, None, None)
    if operator.average is not None:
        capacity = operator.capacity or 0
        usage = operator.average / capacity if capacity else None
        queue = (str(operator.sizes), operator.average, capacity, usage)
    interval_ms = (operator.interval_ns or 0) // 1_000_000
    children = str(operator.children) if operator.children else None
    return (operator.number, operator.type, operator.workers or 1, *queue, interval_ms, operator.parent, children)
