"""The `host_events` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

HOST_EVENTS = Table(
    name="host_events",
    doc="One row per range or point on the host, by module, event and stage, as the framework itself marks them.",
    key=(
        "rank",
        "thread",
        "start_ns",
    ),
    columns=(
        RANK,
        STEP,
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Length; null for a point, and for a start without an end."),
        Column("module", "string", "Module of the framework, e.g. `Dataset`, `Compiler`, `Kernel`.", nullable=False),
        Column("event", "string", "Event of the module."),
        Column("stage", "string", "Stage of the event, or the operator."),
        Column("level", "int32", "Level of detail."),
        Column("custom", "string", "What the module adds, as recorded."),
        Column("process", "int64", "Process id."),
        Column("parent_process", "int64", "Process id of the parent."),
        Column("thread", "int64", "Thread id."),
        Column("memory_start_bytes", "int64", "Memory of the process at the start."),
        Column("memory_end_bytes", "int64", "Memory of the process at the end."),
    ),
)
