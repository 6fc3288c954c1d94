"""The `allocations` table."""

from stepscope.tables.base import RANK, Column, Table

ALLOCATIONS = Table(
    name="allocations",
    doc="One row per memory block with its lifetime.",
    key=(
        "rank",
        "allocation_ns",
    ),
    columns=(
        RANK,
        Column("name", "string", "Operator that asked for it."),
        Column("component", "string", "`shared memory` for a block handed over between processes; else null."),
        Column("device", "int32", "Device index; null for the host."),
        Column("address", "int64", "Address."),
        Column("size_bytes", "int64", "Size.", nullable=False),
        Column("allocation_ns", "int64", "When it was allocated.", nullable=False),
        Column("release_ns", "int64", "When it was released; null if not in the recording."),
        Column("active_release_ns", "int64", "When its last use ended, where known."),
    ),
)
