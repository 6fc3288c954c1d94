"""The columns of the text files, as data; see `csv_files.layout`."""

from __future__ import annotations

from stepscope.sources.ascend.pmu import COUNTER_FIELDS
from stepscope.sources.csv_files.layout import Field, FileLayout, order

_KERNEL = (
    "name,type,op_state,accelerator_core,start_time,duration,wait_time,block_dim,mix_block_dim,hf32_eligible,"
    "input_shapes,input_data_types,input_formats,output_shapes,output_data_types,output_formats,context_id"
)
KERNEL_DETAILS = FileLayout(
    fields=(
        Field("name", "text", ("name", "op_name"), required=True),
        Field("start_ns", "time", ("start_time", "task_start_time"), required=True),
        Field("duration_ns", "duration", ("duration", "task_duration"), required=True),
        Field("step", "small", ("step_id", "step")),
        Field("device", "small", ("device_id",)),
        Field("stream", "small", ("stream_id",)),
        Field("type", "text", ("type", "op_type")),
        Field("state", "text", ("op_state",)),
        Field("core", "text", ("accelerator_core", "task_type")),
        Field("wait_ns", "duration", ("wait_time", "task_wait_time")),
        Field("block_dim", "int", ("block_dim", "block_num")),
        Field("mix_block_dim", "int", ("mix_block_dim", "mix_block_num")),
        Field("input_shapes", "shape", ("input_shapes",)),
        Field("input_types", "text", ("input_data_types",)),
        Field("input_formats", "text", ("input_formats",)),
        Field("output_shapes", "shape", ("output_shapes",)),
        Field("output_types", "text", ("output_data_types",)),
        Field("output_formats", "text", ("output_formats",)),
        *COUNTER_FIELDS,
    ),
    ignored=frozenset({"model_name", "infer_id", "attr_info", "batch_id", "subtask_id", "index_id"}),
    orders=tuple(
        order(f"{front}{_KERNEL}")
        for front in ("step_id,device_id,model_id,task_id,stream_id,", "device_id,model_id,task_id,stream_id,")
    ),
)

_TOTALS = (
    "step,computing,communication(not_overlapped),overlapped,communication,free,stage,bubble,"
    "communication(not_overlapped_and_exclude_receive),preparing"
)
STEP_TRACE_TIME = FileLayout(
    fields=(
        Field("step", "small", ("step",)),
        Field("computing_ns", "duration", ("computing",), required=True),
        Field(
            "communication_not_overlapped_ns",
            "duration",
            ("communication(not_overlapped)", "communication_not_overlapped"),
        ),
        Field("overlapped_ns", "duration", ("overlapped",)),
        Field("communication_ns", "duration", ("communication",)),
        Field("free_ns", "duration", ("free",)),
        Field("stage_ns", "duration", ("stage",)),
        Field("bubble_ns", "duration", ("bubble",)),
        Field(
            "communication_not_overlapped_exclude_receive_ns",
            "duration",
            (
                "communication(not_overlapped_and_exclude_receive)",
                "communication_not_overlapped_and_exclude_receive",
            ),
        ),
        Field("preparing_ns", "duration", ("preparing",)),
    ),
    orders=(order(f"device_id,{_TOTALS}"), order(_TOTALS)),
)

OP_STATISTIC = FileLayout(
    fields=(
        Field("name", "text", ("op_type",), required=True),
        Field("core", "text", ("core_type",)),
        Field("count", "int", ("count",), required=True),
        Field("total_ns", "duration", ("total_time",), required=True),
        Field("min_ns", "duration", ("min_time",)),
        Field("max_ns", "duration", ("max_time",)),
    ),
    orders=(
        order("device_id,model_name,op_type,core_type,count,total_time,min_time,avg_time,max_time,ratio"),
        order("device_id,op_type,core_type,count,total_time,min_time,avg_time,max_time,ratio"),
        order("op_type,core_type,count,total_time,min_time,avg_time,max_time,ratio"),
    ),
)

API_STATISTIC = FileLayout(
    fields=(
        Field("level", "text", ("level",), required=True),
        Field("name", "text", ("api_name", "name"), required=True),
        Field("count", "int", ("count",), required=True),
        Field("total_ns", "duration", ("time",), required=True),
        Field("min_ns", "duration", ("min",)),
        Field("max_ns", "duration", ("max",)),
    ),
    orders=(
        order("device_id,level,api_name,time,count,avg,min,max,variance"),
        order("level,api_name,time,count,avg,min,max,variance"),
    ),
)

OPERATOR_MEMORY = FileLayout(
    fields=(
        Field("name", "text", ("name",)),
        Field("size_bytes", "kib", ("size",), required=True),
        Field("allocation_ns", "time", ("allocation_time",), required=True),
        Field("release_ns", "time", ("release_time",)),
        Field("active_release_ns", "time", ("active_release_time",)),
        Field("device", "device", ("device_type", "device_id")),
    ),
    orders=(
        order(
            "name,size,allocation_time,release_time,active_release_time,duration,active_duration,"
            "allocation_total_allocated,allocation_total_reserved,allocation_total_active,"
            "release_total_allocated,release_total_reserved,release_total_active,stream_ptr,device_type"
        ),
    ),
)

MEMORY_RECORD = FileLayout(
    fields=(
        Field("component", "text", ("component",)),
        Field("time_ns", "time", ("timestamp",), required=True),
        Field("allocated_bytes", "mib", ("total_allocated",)),
        Field("reserved_bytes", "mib", ("total_reserved",)),
        Field("active_bytes", "mib", ("total_active",)),
        Field("device", "device", ("device_type", "device_id", "device")),
    ),
    orders=(
        order("component,timestamp,total_allocated,total_reserved,total_active,stream_ptr,device_type"),
        order("component,timestamp,total_allocated,total_reserved,total_active,device_type"),
    ),
)

NPU_MODULE_MEM = FileLayout(
    fields=(
        Field("component", "text", ("component",)),
        Field("time_ns", "time", ("timestamp",), required=True),
        Field("reserved_bytes", "mib", ("total_reserved",), required=True),
        Field("device", "device", ("device_id", "device_type", "device")),
    ),
    orders=(order("device_id,component,timestamp,total_reserved,device"),),
)
