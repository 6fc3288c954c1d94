"""Which events of a trace_view.json are read, and what its processes are called.

Left out on purpose: the flows `torch_to_npu` and `HostToDevice` repeat the connection ids of the ranges at
their ends, and `enqueue_to_dequeue` repeats the correlation ids of `Enqueue@` and `Dequeue@`.
"""

from __future__ import annotations

from stepscope.sources.trace_events.base import Arg, EventClass, Layout

COMPLETE = frozenset({"X"})

OPERATORS = EventClass(
    "operators",
    COMPLETE,
    frozenset({"cpu_op"}),
    (
        Arg("Sequence number", "sequence", "int"),
        Arg("Fwd thread id", "forward_thread", "int"),
        Arg("Input Dims", "input_shapes", "text"),
        Arg("Input type", "input_types", "text"),
        Arg("Call stack", "stack", "text"),
    ),
)
QUEUE = EventClass("queue", COMPLETE, frozenset({"enqueue", "dequeue"}), (Arg("correlation_id", "correlation", "int"),))
PYTHON = EventClass("python", COMPLETE, frozenset({"python_function"}))
COLLECTION = EventClass("gc", COMPLETE, frozenset({"gc"}))
OTHER = EventClass(
    "other",
    COMPLETE,
    None,
    (
        Arg("connection_id", "correlation", "int"),
        Arg("Task Type", "task_type", "text"),
        Arg("Stream Id", "stream", "int"),
        Arg("stream id", "stream", "int"),
        Arg("size(B)", "size_bytes", "int"),
        Arg("count", "count", "int"),
        Arg("data_type", "element_type", "text"),
    ),
)
"""API calls, device work, communication and its tasks: without a category; their process tells which."""
FLOWS = EventClass("flows", frozenset({"s", "f"}), frozenset({"fwdbwd"}))
FREQUENCY = EventClass(
    "frequency",
    frozenset({"C"}),
    None,
    (Arg("MHz", "value", "float"),),
    frozenset({"AI Core Freq", "AI Core Frequency"}),
)
METADATA = EventClass(
    "metadata", frozenset({"M"}), None, (Arg("name", "label", "text"), Arg("labels", "labels", "text"))
)

LAYOUT = Layout((OPERATORS, QUEUE, PYTHON, COLLECTION, OTHER, FLOWS, FREQUENCY, METADATA))

HARDWARE = "Ascend Hardware"
OLD_HARDWARE = "Task Scheduler"
"""What the device was called until CANN 6."""
STEP_TRACE = "Step Trace"
"""Prefix of the name of the track with the marks of steps, one of the stream tracks."""
COMMUNICATION = ("Communication", "HCCL")
OVERLAP = "Overlap Analysis"
CPU_OPERATORS = "CPU OP"
HOST_CATEGORIES = {
    "CANN": "runtime",
    "Python GC": "gc",
    CPU_OPERATORS: "operator",
    "Scope Layer": "annotation",
}
"""Processes on the host whose events carry no category, and what their events are."""
KNOWN_PROCESSES = frozenset({HARDWARE, *COMMUNICATION, OVERLAP, *HOST_CATEGORIES, "AI Core Freq"})
