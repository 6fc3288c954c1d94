"""What is rarely asked of a trace, in tables apart: names of threads, waits of streams, resources of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import OPERATOR_DETAILS as DETAILS_OF_OPERATORS
from stepscope.sources.kineto.layout import PYTHON_IDS
from stepscope.tables import (
    COLLECTIVE_SPLITS,
    KERNEL_RESOURCES,
    OPERATOR_DETAILS,
    PYTHON_CALLS,
    SYNCHRONIZATIONS,
    THREADS,
    Table,
)

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
    _write_known(work, KERNEL_RESOURCES, _RESOURCES, sink)


def write_python_calls(rows: pl.DataFrame, sink: Sink) -> None:
    """Write the numbers of Python functions, if they have some."""
    _write_known(rows, PYTHON_CALLS, PYTHON_IDS, sink)


def write_operator_details(rows: pl.DataFrame, sink: Sink) -> None:
    """Write strides of operators and what is known of compiled kernels, if that is recorded."""
    if "input_strides" in rows.columns:
        rows = rows.with_columns(on_one_line(rows["input_strides"]))
    _write_known(rows, OPERATOR_DETAILS, DETAILS_OF_OPERATORS, sink)


def write_splits(calls: pl.DataFrame, sink: Sink) -> None:
    """Write how collective calls split their payload, if that is recorded; an empty list says that parts are equal."""
    said = [name for name in ("input_splits", "output_splits") if name in calls.columns]
    rows = calls.with_columns(on_one_line(calls[name]) for name in said)
    rows = rows.with_columns(pl.when(pl.col(name) != "[]").then(name).alias(name) for name in said)
    _write_known(rows, COLLECTIVE_SPLITS, said, sink)


def on_one_line(texts: pl.Series) -> pl.Series:
    """Lists of a trace that was indented as those of any other, so that equal ones are equal texts."""
    has_lines = texts.str.contains("\n", literal=True)
    if not has_lines.any():
        return texts
    joined = texts.str.replace_all(r"\s*\n\s*", "").str.replace_all(",", ", ", literal=True)
    whole: pl.Series = joined.zip_with(has_lines.fill_null(False), texts)
    return whole


def _write_known(rows: pl.DataFrame, table: Table, columns: Sequence[str], sink: Sink) -> None:
    """Write those rows of a table of details in which one of its columns is known."""
    known = [name for name in columns if name in rows.columns and rows[name].null_count() < rows.height]
    if known:
        found = rows.select(*(table.key or ()), *known)
        whole = any(not found[name].null_count() for name in known)
        sink.write(table, found if whole else found.filter(pl.any_horizontal(pl.col(known).is_not_null())))
