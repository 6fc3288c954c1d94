"""`aicpu_intermediate`: one row for each execution of a kernel on the AI CPU, in ms; by kernel they are totals."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.operator_rows import type_of, write_operators
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv

_LAYOUT = FileLayout(
    fields=(
        Field("name", "text", ("kernel_type", "op_type", "node_name"), required=True),
        Field("duration_ns", "ms", ("total_time",), required=True),
        Field("wait_ns", "ms", ("dispatch_time",)),
    ),
    ignored=frozenset({"serial_number", "execution_time", "run_start", "run_end"}),
    report_cells=True,
    orders=(
        order("serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end"),
        order("serial_number,kernel_type,total_time,dispatch_time,run_start,run_end"),
    ),
)


def write_ai_cpu(files: RankFiles, sink: Sink) -> None:
    """Write totals of kernels; their time includes execution and dispatch."""
    path = files.one("ai_cpu")
    rows = None if path is None else read_csv(path, _LAYOUT, sink)
    if rows is None or path is None:
        return
    if rows.is_empty():
        sink.issue("note", path, "lists no AI CPU kernels", "Nothing to do if the model has none.")
        return
    sound = rows.filter(pl.col("duration_ns") >= 0)
    if lost := rows.height - sound.height:
        problem = f"{lost} of {rows.height} executions have a negative duration and are left out"
        sink.issue("error", path, problem, "The file is damaged; copy it again.", lost=lost)
    wait = pl.col("wait_ns") if "wait_ns" in rows.columns else pl.lit(None, pl.Int64)
    totals = (
        sound.group_by("name", maintain_order=True)
        .agg(
            count=pl.len(),
            total_ns=pl.sum("duration_ns"),
            min_ns=pl.min("duration_ns"),
            max_ns=pl.max("duration_ns"),
            wait_ns=pl.when(wait.count() > 0).then(wait.sum()),
        )
        .with_columns(type=type_of(pl.col("name")), core=pl.lit("AI_CPU"))
    )
    write_operators(path, totals, "AI_CPU", "operator", sink)
