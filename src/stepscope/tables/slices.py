"""Ranges of time: slices, the flows between them, and their call stacks."""

from stepscope.tables.base import STEP, Column, Table

MARKS = "MSTX"
"""`process` of ranges that a script marks by Ascend's mstx."""

MODULE_MARKS = "MSTX Module"
"""That of those of the domain `Module`; they are apart, so that they enclose one another and nothing else."""

SLICES = Table(
    name="slices",
    doc="One row per timed range on a host thread or device stream.",
    key=("slice",),
    columns=(
        Column(
            "slice",
            "int64",
            "Number of the slice, unique in its rank; other tables refer to it.",
            nullable=False,
        ),
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration, at least 0.", nullable=False),
        Column("self_ns", "int64", "Duration less that of direct children on the same thread."),
        Column(
            "category",
            "string",
            "`operator`, `annotation`, `python`, `runtime` (driver or runtime call), `queue`, `gc`, `kernel`, `memory`, `communication`, `communication_task`, `device_annotation`, `overhead`, `compile` (a compiler and what it traces), `mark` (a point that a script marks, without a duration), `other`.",
            nullable=False,
        ),
        Column("name", "string", "Name as recorded.", nullable=False),
        Column("process", "string", "Process id or label."),
        Column("thread", "string", "Thread id or label."),
        Column("device", "int32", "Device index for device work."),
        Column("stream", "int32", "Device stream."),
        Column("correlation", "int64", "Id that a launch shares with its device work."),
        Column("parent", "int64", "Enclosing slice on the same thread."),
        Column("depth", "int32", "Nesting depth on its thread, 0 at the top."),
        STEP,
    ),
)

FLOWS = Table(
    name="flows",
    doc="One row per recorded flow (an arrow in a trace) between two slices, e.g. from a forward operator to its backward operator.",
    key=("kind", "flow"),
    columns=(
        Column("kind", "string", "`forward_backward`, `enqueue_dequeue`...", nullable=False),
        Column("flow", "string", "Id as recorded.", nullable=False),
        Column("from_ns", "int64", "Time at the tail."),
        Column("from_thread", "string", "Thread at the tail."),
        Column("to_ns", "int64", "Time at the head."),
        Column("to_thread", "string", "Thread at the head."),
    ),
)

STACKS = Table(
    name="stacks",
    doc="One row per distinct call stack.",
    key=("stack",),
    columns=(
        Column("stack", "int64", "Number of the stack.", nullable=False),
        Column("text", "string", "Frames, one per line, innermost first.", nullable=False),
    ),
)

SYNCHRONIZATIONS = Table(
    name="synchronizations",
    doc="One row per recorded wait of the host or of a stream for a stream, an event or a device.",
    key=("slice",),
    columns=(
        Column("slice", "int64", "Row of `slices`.", nullable=False),
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration.", nullable=False),
        Column("name", "string", "Kind of wait, e.g. `Stream Wait Event`.", nullable=False),
        Column("device", "int32", "Device index."),
        Column("stream", "int32", "Stream that waited, or that the host waited for."),
        Column("correlation", "int64", "Id shared with the host call that made it wait."),
        Column("waited_stream", "int32", "Stream in which the event that it waited for was recorded."),
        Column("waited_correlation", "int64", "Id of the host call that recorded this event."),
        Column("waited_event", "int64", "Number of this event."),
    ),
)

PYTHON_CALLS = Table(
    name="python_calls",
    doc="Numbers of Python function calls, if recorded; apart from `slices` as they are rarely asked.",
    key=("slice",),
    columns=(
        Column("slice", "int64", "Row of `slices`.", nullable=False),
        Column("python_id", "int64", "Number of the call, unique in its trace."),
        Column("python_parent_id", "int64", "That of the call which made it, also where that one is not recorded."),
        Column("python_module_id", "int64", "Number of the `nn.Module` among those of its class."),
    ),
)

THREADS = Table(
    name="threads",
    doc="One row per host thread or track of a trace that it names; threads are those of `slices`.",
    key=("process", "thread"),
    columns=(
        Column("process", "string", "Process id or label."),
        Column("thread", "string", "Thread id or label; null where only its process is named."),
        Column("thread_name", "string", "Name of the thread."),
        Column("thread_sort_index", "int64", "Place of the thread among those of its process when they are shown."),
        Column("process_name", "string", "Name of the process."),
        Column("process_labels", "string", "What else the trace says of the process, e.g. `CPU` or `GPU 0`."),
        Column("process_sort_index", "int64", "Place of the process when they are shown."),
    ),
)
