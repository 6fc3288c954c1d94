"""Operators of an Ascend device by type and by place in the model, in ms.

`aicore_intermediate`, `framework_raw` and `flops` are about the device's graphs, `pynative_op_intermediate` about
PyNative mode, `aicpu_intermediate` about its AI CPU. Times of operators are averages; the table keeps totals. Shares, a
fraction or % by generation, are not kept, only compared.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.ascend.framework_files import ai_cpu_totals
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.flops import check_rates, read_flops
from stepscope.sources.classic.operator_rows import TYPES, short_name, type_of, with_counts, write_list, write_operators
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.sinks import SilentSink
from stepscope.tables import OPERATOR_TOTALS

_FULL_NAMES = ("full_kernel_name", "full_op_name", "op_full_name", "full_kernel_time")
"""The last is a header that files of 1.x carry by mistake."""
_DETAILS = FileLayout(
    fields=(
        Field("full_name", "text", _FULL_NAMES, required=True),
        Field("mean_ms", "float", ("task_duration", "execution_time", "avg_execution_time"), required=True),
        Field("count", "int", ("execution_frequency",), expected=True),
        Field("core", "text", ("task_type",)),
    ),
    report_cells=True,
    report_empty=True,
    orders=(
        order("full_kernel_name,task_duration,execution_frequency,task_type"),
        order("full_op_name,execution_time,execution_frequency"),
        order("full_op_name,execution_time"),
    ),
)
_FRAMEWORK = FileLayout(
    fields=(
        Field("full_name", "text", _FULL_NAMES, required=True),
        # 2.1 has both: there the second is the unit that runs the operator.
        Field("type", "text", ("op_type", "kernel_type")),
        Field("core", "text", ("task_type", "kernel_type")),
        Field("framework_name", "text", ("op_name",)),
        Field("stream", "small", ("stream_id",)),
        Field("block_dim", "int", ("block_dim",)),
        Field("subgraph", "text", ("subgraph",)),
        Field("inputs", "text", ("op_info",)),
        Field("graph", "int", ("model_id", "graph_id")),
    ),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,"
            "op_type,subgraph,op_info,model_id,task_type"
        ),
        order("task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info,model_id,kernel_type"),
        order("task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info,graph_id"),
        order("task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info"),
    ),
)
_PYNATIVE = FileLayout(
    fields=(
        Field("full_name", "text", ("full_op_name", "full_kernel_name", "op_full_name", "op_name"), required=True),
        Field("mean_ms", "float", ("avg_execution_time", "execution_time", "task_duration"), required=True),
        Field("count", "int", ("execution_frequency", "op_occurrences"), expected=True),
        Field("type", "text", ("op_type", "kernel_type")),
        Field("subgraph", "text", ("subgraph",)),
        Field("inputs", "text", ("op_info",)),
    ),
    ignored=frozenset({"op_name", "kernel_name", "serial_number", "task_type"}),
    report_cells=True,
    report_empty=True,
)
_AI_CPU = FileLayout(
    fields=(
        Field("name", "text", ("kernel_type", "op_type", "node_name"), required=True),
        Field("total_ns", "ms", ("total_time",), required=True),
        Field("wait_ns", "ms", ("dispatch_time",)),
    ),
    report_cells=True,
    orders=(
        order("serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end"),
        order("serial_number,kernel_type,total_time,dispatch_time,run_start,run_end"),
    ),
)


def write_device_operators(files: RankFiles, sink: Sink) -> None:
    """Write operators of the device by type and by place in the model."""
    types = write_list(files.one("device_types"), TYPES, "AI_CORE", "type", sink)
    path, flops_path = files.one("device_operators"), files.one("flops")
    if path is None and files.one("cpu_operators") is not None:
        return  # they have the operations, if any are known
    details = read_csv(path, _DETAILS, sink)
    flops = read_flops(flops_path, sink)
    if details is None or path is None:
        if flops is not None and flops.height and flops_path is not None:
            problem = "its operators are left out: the list with their counts (aicore_intermediate) is missing"
            sink.issue("warning", flops_path, problem, "Copy that file too, or run the profiler's analysis again.")
        return
    rows = _described(details, _read_framework(files.one("framework"), sink))
    rows = with_counts(path, rows, types, sink)
    if flops is not None and flops_path is not None:
        if strangers := flops.join(rows, on="full_name", how="anti").height:
            problem = f"{strangers} of {flops.height} operators are not in the device's list and are left out"
            sink.issue("note", flops_path, problem, "Check that all files belong to one profile.")
        rows = rows.join(flops, on="full_name", how="left", maintain_order="left")
        check_rates(flops_path, rows, sink)
    write_operators(path, rows, "AI_CORE", "operator", sink)


def write_pynative(files: RankFiles, sink: Sink) -> None:
    """Write operators of PyNative mode by type and by place in the model."""
    types = write_list(files.one("pynative_types"), TYPES, "PYNATIVE", "type", sink)
    path = files.one("pynative_operators")
    rows = read_csv(path, _PYNATIVE, sink)
    if rows is not None and path is not None:
        write_operators(path, with_counts(path, _described(rows), types, sink), "PYNATIVE", "operator", sink)


def write_ai_cpu(path: Path, sink: Sink) -> None:
    """Write totals of kernels on the AI CPU, of a row for each execution; their time includes dispatch."""
    rows = read_csv(path, _AI_CPU, sink)
    if rows is not None and rows.is_empty():
        sink.issue("note", path, "lists no AI CPU kernels", "Nothing to do if the model has none.")
    elif rows is not None:
        sink.write(OPERATOR_TOTALS, ai_cpu_totals(path, rows, sink))


def peek_types(files: RankFiles) -> pl.DataFrame:
    """`name` and `type` of the operators that the framework lists; `write_device_operators` reports damage."""
    path = files.one("framework")
    framework = None if path is None else _read_framework(path, SilentSink())
    none = {"full_name": pl.String, "type": pl.String}
    known = pl.DataFrame(schema=none) if framework is None else framework
    return known.select(name="full_name", type="type").drop_nulls()


def _read_framework(path: Path | None, sink: Sink) -> pl.DataFrame | None:
    """The framework's data about each operator, one row each: it lists an operator once for each of its tasks."""
    framework = read_csv(path, _FRAMEWORK, sink)
    if framework is None:
        return None
    is_full = pl.col("framework_name").str.contains("/", literal=True)  # up to 2.0 it may be the short one
    framework = framework.with_columns(framework_name=pl.when(is_full).then("framework_name"))
    return framework.unique("full_name", keep="first", maintain_order=True)


def _described(details: pl.DataFrame, framework: pl.DataFrame | None = None) -> pl.DataFrame:
    """Operators with the framework's data about them; their type is in their name too."""
    if framework is not None:
        details = details.join(framework, on="full_name", how="left", maintain_order="left", suffix="_framework")
    name = short_name(pl.col("full_name"))
    types = [pl.col("type")] if "type" in details.columns else []
    cores = [pl.col(column) for column in ("core", "core_framework") if column in details.columns]
    return details.with_columns(
        name=name, type=pl.coalesce(*types, type_of(name)), core=pl.coalesce(*cores, pl.lit(None, pl.String))
    )
