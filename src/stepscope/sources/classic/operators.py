"""Operators of an Ascend device by type and by place in the model: `aicore_intermediate`, `framework_raw`, `flops`.

Times are ms, of operators on average; the table keeps totals. Shares, a fraction or % by generation, are not kept, only
compared.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.flops import check_rates, read_flops
from stepscope.sources.classic.operator_counts import known_counts
from stepscope.sources.classic.operator_rows import TYPES, check_shares, short_name, type_of, write_operators
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv

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
    ignored=frozenset({"task_id", "kernel_name"}),
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
UNIT = "AI_CORE"


def write_device_operators(files: RankFiles, sink: Sink) -> None:
    """Write operators of the device by type and by place in the model."""
    types_path = files.one("device_types")
    types = _read_types(types_path, sink)
    if types is not None and types_path is not None:
        write_operators(types_path, types, UNIT, "type", sink)
    path = files.one("device_operators")
    if path is None and files.one("cpu_operators") is not None:
        return  # they have the operations, if any are known
    details = None if path is None else read_csv(path, _DETAILS, sink)
    flops = read_flops(files.one("flops"), sink)
    if details is None or path is None:
        if flops is not None and flops.height and (stranded := files.one("flops")) is not None:
            problem = "its operators are left out: the list with their counts (aicore_intermediate) is missing"
            sink.issue("warning", stranded, problem, "Copy that file too, or run the profiler's analysis again.")
        return
    rows = _described(details, _read_framework(files.one("framework"), sink))
    rows = known_counts(path, rows, types, sink)
    if flops is not None and (flops_path := files.one("flops")) is not None:
        if strangers := flops.join(rows, on="full_name", how="anti").height:
            problem = f"{strangers} of {flops.height} operators are not in the device's list and are left out"
            sink.issue("note", flops_path, problem, "Check that all files belong to one profile.")
        rows = rows.join(flops, on="full_name", how="left", maintain_order="left")
        check_rates(flops_path, rows, sink)
    write_operators(path, rows, UNIT, "operator", sink)


def _read_types(path: Path | None, sink: Sink) -> pl.DataFrame | None:
    types = None if path is None else read_csv(path, TYPES, sink)
    if types is not None and path is not None:
        check_shares(path, types, sink)
        types = types.with_columns(type=pl.col("name"))
    return types


def _read_framework(path: Path | None, sink: Sink) -> pl.DataFrame | None:
    """The framework's data about each operator, one row each: it lists an operator once for each of its tasks."""
    framework = None if path is None else read_csv(path, _FRAMEWORK, sink)
    if framework is None:
        return None
    if "framework_name" in framework.columns:  # up to 2.0 it is the short one, which the full name ends with
        is_full = pl.col("framework_name").str.contains("/", literal=True)
        framework = framework.with_columns(framework_name=pl.when(is_full).then("framework_name"))
    return framework.unique("full_name", keep="first", maintain_order=True)


def _described(details: pl.DataFrame, framework: pl.DataFrame | None) -> pl.DataFrame:
    """Operators with the framework's data about them; their type is in their name too."""
    if framework is not None:
        details = details.join(framework, on="full_name", how="left", maintain_order="left", suffix="_framework")
    name = short_name(pl.col("full_name"))
    types = [pl.col("type")] if "type" in details.columns else []
    cores = [pl.col(column) for column in ("core", "core_framework") if column in details.columns]
    return details.with_columns(
        name=name, type=pl.coalesce(*types, type_of(name)), core=pl.coalesce(*cores, pl.lit(None, pl.String))
    )
