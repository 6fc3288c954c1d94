"""Which events of a Kineto trace are read, and into which columns."""

from __future__ import annotations

import polars as pl

from stepscope.sources.trace_events.base import BASE, Arg, EventClass, Layout
from stepscope.tables.base import with_schema

RANGE = frozenset({"X"})
MEMORY_EVENT = "[memory]"
COMM_CALL = "record_param_comms"

_OPERATOR_CATEGORIES = frozenset({"cpu_op", "operator"})

_OPERATOR_ARGS = (
    Arg("External id", "external_id", "int"),
    Arg("Input Dims", "input_shapes", "json"),
    Arg("Input type", "input_types", "json"),
    Arg("Sequence number", "sequence", "int"),
    Arg("Fwd thread id", "forward_thread", "int"),
    Arg("Call stack", "stack_text", "text"),
    Arg("Concrete Inputs", "input_values", "json"),
)

# not named like columns of `slices` and `operators`, which are about something else
_TRITON_ARGS = (
    *(
        Arg(key, key, "json", rare=True)
        for key in ("kernel_name", "kernel_file", "kernel_hash", "kernel_backend", "kernel_kwargs")
    ),
    Arg("kernel_num_gb", "kernel_moved_gb", "float", rare=True),
    Arg("kernel_flop", "kernel_flops", "float", rare=True),
    Arg("grid", "kernel_grid", "json", rare=True),
    Arg("stream", "kernel_stream", "int", rare=True),
    Arg("num_warps", "kernel_warps", "small", rare=True),
    Arg("num_stages", "kernel_stages", "small", rare=True),
)
_OPERATOR_DETAILS = (Arg("Input Strides", "input_strides", "json", rare=True), *_TRITON_ARGS)
OPERATOR_DETAILS = tuple(arg.column for arg in _OPERATOR_DETAILS)

_COMM_ARGS = (
    Arg("Collective name", "comm_name", "text"),
    Arg("Process Group Name", "comm_group", "text"),
    Arg("Process Group ID", "comm_group", "text"),  # PyTorch 2.2 and 2.3
    Arg("Process Group Description", "comm_group_name", "text"),
    Arg("Process Group Ranks", "comm_members", "json"),
    Arg("Group size", "comm_group_size", "small"),
    Arg("In msg nelems", "comm_in", "int"),
    Arg("Out msg nelems", "comm_out", "int"),
    Arg("dtype", "comm_type", "text"),
    Arg("Seq", "comm_sequence", "int"),
    Arg("Src Rank", "comm_source", "small"),
    Arg("Dst Rank", "comm_destination", "small"),
)

_SPLIT_ARGS = (
    Arg("In split size", "comm_input_splits", "json", rare=True),
    Arg("Out split size", "comm_output_splits", "json", rare=True),
)
COMM_SPLITS = tuple(arg.column for arg in _SPLIT_ARGS)

COMM_COLUMNS = tuple(dict.fromkeys(arg.column for arg in _COMM_ARGS))

_RUNTIME_ARGS = (
    Arg("correlation", "correlation", "int"),
    Arg("External id", "external_id", "int"),
    Arg("external id", "external_id", "int"),  # PyTorch 1.8
)

_DEVICE_ARGS = (
    Arg("device", "device", "small"),
    Arg("stream", "stream", "small"),
    *_RUNTIME_ARGS,
    Arg("bytes", "size_bytes", "int"),
    Arg("grid", "grid", "json"),
    Arg("block", "block", "json"),
    Arg("est. achieved occupancy %", "occupancy_percent", "float"),
    Arg("blocks per SM", "blocks_per_sm", "float"),
    Arg("warps per SM", "warps_per_sm", "float"),
    Arg("registers per thread", "registers_per_thread", "int"),
    Arg("shared memory", "shared_memory_bytes", "int"),
)

_PYTHON_ARGS = tuple(
    Arg(f"Python {what}", f"python_{what.replace(' ', '_')}", "int", rare=True)
    for what in ("id", "parent id", "module id")
)
PYTHON_IDS = tuple(arg.column for arg in _PYTHON_ARGS)

# not named like columns of `slices`, which such ranges leave empty
_SYNC_ARGS = (
    *(Arg(name, f"sync_{name}", "small") for name in ("device", "stream")),
    Arg("correlation", "sync_correlation", "int"),
    Arg("wait_on_stream", "waited_stream", "small"),
    Arg("wait_on_cuda_event_record_corr_id", "waited_correlation", "int"),
    Arg("wait_on_cuda_event_id", "waited_event", "int"),
)

_LABEL_ARGS = (
    Arg("name", "label", "text"),
    Arg("labels", "labels", "text"),
    Arg("sort_index", "sort_index", "text"),  # also the largest of 64 bits
)
LABELS = "labels"
"""Class of what the trace calls its processes and threads; it has no times."""

_MEMORY_ARGS = (
    Arg("Addr", "address", "int"),
    Arg("Bytes", "change_bytes", "int"),
    Arg("Device Type", "device_type", "int"),
    Arg("Device Id", "device", "small"),
    Arg("Total Allocated", "allocated_bytes", "int"),
    Arg("Total Reserved", "reserved_bytes", "int"),
)

_INSTRUCTIONS = tuple(f"{unit}{kind}" for unit in "fhd" for kind in ("add", "mul", "fma"))
COUNTER_COLUMNS = {
    **{f"op_{op}": f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in _INSTRUCTIONS},
    "tensor": "sm__inst_executed_pipe_tensor.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
}
"""Column to counter of the hardware, of those that PyTorch has names for or documents."""

_COUNTER_ARGS = (
    Arg("device", "device", "small"),
    *(Arg(name, column, "float") for column, name in COUNTER_COLUMNS.items()),
)

_RANGE = ("name", "start_ns", "duration_ns", "place")

LAYOUT = Layout(
    (
        EventClass(
            "call",
            RANGE,
            _OPERATOR_CATEGORIES,
            _OPERATOR_ARGS + _COMM_ARGS + _SPLIT_ARGS + _OPERATOR_DETAILS[:1],
            names=frozenset({COMM_CALL}),
            base=_RANGE,
        ),
        EventClass("operator", RANGE, _OPERATOR_CATEGORIES, _OPERATOR_ARGS + _OPERATOR_DETAILS, base=_RANGE),
        EventClass("annotation", RANGE, frozenset({"user_annotation"}), _OPERATOR_ARGS[:3], base=_RANGE),
        EventClass("python", RANGE, frozenset({"python_function", "python"}), _PYTHON_ARGS, base=_RANGE),
        EventClass(
            "runtime",
            RANGE,
            frozenset(
                {"runtime", "driver", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"}
                | {"xpu_runtime", "mtia_runtime", "glow_runtime", "privateuse1_runtime", "privateuse1_driver"}
            ),
            _RUNTIME_ARGS,
            base=_RANGE,
        ),
        EventClass(
            "device",
            RANGE,
            frozenset(
                {"kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset", "concurrent_kernel"}
                | {"mtia_ccp_events", "hpu_op"}
            ),
            _DEVICE_ARGS + _COMM_ARGS + _SPLIT_ARGS,
            base=("category", *_RANGE),
        ),
        EventClass("counter_range", RANGE, frozenset({"cuda_profiler_range"}), _COUNTER_ARGS, base=_RANGE),
        EventClass("device_annotation", RANGE, frozenset({"gpu_user_annotation"}), _DEVICE_ARGS[:2], base=_RANGE),
        EventClass(
            "memory",
            frozenset({"i"}),
            frozenset({"", "cpu_instant_event"}),
            _MEMORY_ARGS,
            names=frozenset({MEMORY_EVENT}),
            base=("name", "start_ns", "place"),
        ),
        EventClass(
            "flow",
            frozenset({"s", "f"}),
            frozenset({"fwdbwd", "forward_backward"}),
            base=("phase", "id", "start_ns", "place"),
        ),
        EventClass(
            LABELS,
            frozenset({"M"}),
            None,
            _LABEL_ARGS,
            names=frozenset(
                f"{of}_{what}" for of in ("process", "thread") for what in ("name", "labels", "sort_index")
            ),
            base=("name", "place"),
        ),
        EventClass("other", RANGE, None, _SYNC_ARGS, base=("category", *_RANGE)),
    )
)

HOST_CLASSES = ("operator", "call", "annotation", "python", "runtime", "other")
"""Classes of ranges on host threads, in the order in which their rows are numbered."""

DEVICE_CLASSES = ("device", "device_annotation")

COLUMNS = {
    cls.name: tuple(dict.fromkeys((*cls.base, *(arg.column for arg in cls.args if not arg.rare))))
    for cls in LAYOUT.classes
}
"""Columns that each class always has, without what it implies."""

_KINDS = {"int": pl.Int64, "small": pl.Int32, "float": pl.Float64, "text": pl.String, "json": pl.String}


def event_frame(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Events of a class, from the columns that are known of them; the others are null, or missing if they are rare."""
    args = [arg for cls in LAYOUT.classes if cls.name == name for arg in cls.args if not arg.rare]
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(BASE, pl.String)
    schema |= {arg.column: _KINDS[arg.kind] for arg in args}
    return with_schema(frame, {**schema, "start_ns": pl.Int64, "duration_ns": pl.Int64})
