"""Operators and kernels of a GPU: `gpu_op_type_info`, `gpu_op_detail_info`, `gpu_activity_data`, all in us."""

from __future__ import annotations

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.operator_rows import write_list
from stepscope.sources.csv_files.layout import Field, FileLayout, order

_TYPES = FileLayout(
    fields=(
        Field("name", "text", ("op_type",), required=True),
        Field("count", "int", ("type_occurrences",), required=True),
        Field("total_ns", "duration", ("total_time",), required=True),
        Field("share", "float", ("total_proportion", "proportion")),
    ),
    report_cells=True,
    report_empty=True,
    orders=(order("op_type,type_occurrences,total_time,total_proportion,avg_time"),),
)
_OPERATORS = FileLayout(
    fields=(
        Field("name", "text", ("op_name",), required=True),
        Field("count", "int", ("op_occurrences",), required=True),
        Field("total_ns", "duration", ("op_total_time",), required=True),
        Field("full_name", "text", ("op_full_name",)),
        Field("type", "text", ("op_type",)),
        Field("core", "text", ("op_side",)),
        Field("activity_ns", "duration", ("cuda_activity_cost_time",)),
        Field("activities", "int", ("cuda_activity_call_count",)),
        Field("share", "float", ("total_proportion", "proportion")),
    ),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "op_side,op_type,op_name,op_full_name,op_occurrences,op_total_time,op_avg_time,"
            "total_proportion,cuda_activity_cost_time,cuda_activity_call_count"
        ),
    ),
)
_ACTIVITIES = FileLayout(
    fields=(
        Field("name", "text", ("name",), required=True),
        Field("count", "int", ("occurrences",), required=True),
        Field("total_ns", "duration", ("total_duration",), required=True),
        Field("type", "text", ("type",)),
        Field("full_name", "text", ("op_full_name",)),
        Field("stream", "small", ("stream_id",)),
        Field("block", "text", ("block_dim",)),
        Field("grid", "text", ("grid_dim",)),
        Field("max_ns", "duration", ("max_duration",)),
        Field("min_ns", "duration", ("min_duration",)),
    ),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "name,type,op_full_name,stream_id,block_dim,grid_dim,occurrences,"
            "total_duration,avg_duration,max_duration,min_duration"
        ),
    ),
)


def write_gpu_operators(files: RankFiles, sink: Sink) -> None:
    """Write operators by type and by place in the model, and the kernels that they launched."""
    write_list(files.one("gpu_types"), _TYPES, "GPU", "type", sink)
    write_list(files.one("gpu_operators"), _OPERATORS, "GPU", "operator", sink)
    write_list(files.one("gpu_activities"), _ACTIVITIES, "CUDA", "activity", sink)
