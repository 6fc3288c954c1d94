"""The `flows` table."""

from stepscope.tables.base import RANK, Column, Table

FLOWS = Table(
    name="flows",
    doc="One row per recorded flow (an arrow in a trace) between two slices, e.g. from a forward operator to its backward.",
    key=(
        "rank",
        "kind",
        "flow",
    ),
    columns=(
        RANK,
        Column("kind", "string", "`forward_backward`, `enqueue_dequeue`...", nullable=False),
        Column("flow", "string", "Id as recorded.", nullable=False),
        Column("from_ns", "int64", "Time at the tail."),
        Column("from_thread", "string", "Thread at the tail."),
        Column("to_ns", "int64", "Time at the head."),
        Column("to_thread", "string", "Thread at the head."),
    ),
)
