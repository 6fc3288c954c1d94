"""Which events of a trace_view.json are read, and what its processes are called.

Left out on purpose: the flows `torch_to_npu` and `HostToDevice` repeat the connection ids of the ranges at
their ends, and `enqueue_to_dequeue` repeats the correlation ids of `Enqueue@` and `Dequeue@`.
"""

from __future__ import annotations

from stepscope.sources.trace_events.base import Arg, EventClass, Layout

COMPLETE = frozenset({"X"})
_RANGE = ("name", "place", "start_ns", "duration_ns")

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
    base=_RANGE,
)
QUEUE = EventClass(
    "queue",
    COMPLETE,
    frozenset({"enqueue", "dequeue"}),
    (Arg("correlation_id", "correlation", "int"),),
    base=_RANGE,
)
PYTHON = EventClass("python", COMPLETE, frozenset({"python_function"}), base=_RANGE)
COLLECTION = EventClass("gc", COMPLETE, frozenset({"gc"}), base=_RANGE)
_WORK = (
    Arg("connection_id", "correlation", "int"),
    Arg("Task Type", "task_type", "text"),
    Arg("Stream Id", "stream", "int"),
    Arg("stream id", "stream", "int"),
    Arg("size(B)", "size_bytes", "int"),
    Arg("count", "count", "int"),
    Arg("data_type", "element_type", "text"),
    Arg("alg_type", "algorithm", "text"),
    Arg("relay", "relay", "text"),
    Arg("retry", "retry", "text"),
)
OTHER = EventClass("other", COMPLETE, None, (*_WORK, Arg("operation", "direction", "text", rare=True)), base=_RANGE)
"""API calls, device work, communication and its tasks: without a category; their process tells which."""
_TASK_WORDS = ("Memcpy", "Notify{}Wait", "Notify{}Record", "Reduce{}Inline", "Reduce{}TBE", "RDMA{}Send", "RDMASend")
TASKS = EventClass(
    "tasks",
    COMPLETE,
    None,
    (
        *_WORK,
        Arg("src rank", "source", "int"),
        Arg("dst rank", "destination", "int"),
        Arg("transport type", "transport", "text"),
        Arg("size(Byte)", "moved_bytes", "int"),
        Arg("data type", "moved_type", "text"),
        Arg("link type", "link", "text"),
    ),
    names=frozenset(word.format(gap) for word in _TASK_WORDS for gap in ("_", " ")),
    base=_RANGE,
)
"""Tasks of communication by their usual names. They alone have these arguments, and other events are many: each column
costs time for every event of a class. Tasks of other names are among the others, without them."""
FLOWS = EventClass("flows", frozenset({"s", "f"}), frozenset({"fwdbwd"}), base=("phase", "id", "start_ns", "thread"))
SAMPLES = EventClass(
    "samples",
    frozenset({"C"}),
    None,
    (
        Arg("MHz", "mhz", "float"),
        Arg("Read(MB/s)", "mib_per_s", "float"),
        Arg("Write(MB/s)", "mib_per_s", "float"),
        Arg("Throughput(MB/s)", "mib_per_s", "float"),
        Arg("Hit Rate(%)", "ratio", "float"),
    ),
    base=("name", "process", "start_ns"),
)
"""Samples of counters. What is written as MB is 1 MiB, and what is written as % is a ratio."""
FREQUENCY = ("AI Core Freq", "AI Core Frequency")
"""Names of samples of the AI core's clock."""
METADATA = EventClass(
    "metadata", frozenset({"M"}), None, (Arg("name", "label", "text"), Arg("labels", "labels", "text"))
)

LAYOUT = Layout((OPERATORS, QUEUE, PYTHON, COLLECTION, TASKS, OTHER, FLOWS, SAMPLES, METADATA))

SAID = {"relayed": "relay", "retried": "retry"}
"""What is so of a call to the column that says `yes` or `no`."""
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
