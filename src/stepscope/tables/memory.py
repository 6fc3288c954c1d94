"""Memory of allocators: blocks, and the amount over time."""

from stepscope.tables.base import Column, Table

ALLOCATIONS = Table(
    name="allocations",
    doc="One row per memory block with its lifetime.",
    key=("allocation_ns",),
    columns=(
        Column("name", "string", "Operator that allocated it."),
        Column("component", "string", "`shared memory` for a block passed between processes; otherwise null."),
        Column("device", "int32", "Device index; null for the host."),
        Column("address", "int64", "Address."),
        Column("size_bytes", "int64", "Size.", nullable=False),
        Column("allocation_ns", "int64", "When it was allocated.", nullable=False),
        Column("release_ns", "int64", "When it was released; null if not in the recording."),
        Column("active_release_ns", "int64", "When its last use ended, if known."),
    ),
)

SHARED_MEMORY = "shared memory"
"""Component of blocks passed between processes, such as batches of loader workers: no allocator counts them."""

MEMORY_CURVE = Table(
    name="memory_curve",
    doc="One row per change of allocated or reserved memory.",
    key=("time_ns",),
    columns=(
        Column("time_ns", "int64", "ns since the epoch.", nullable=False),
        Column(
            "component",
            "string",
            "`PTA`, `GE`, `APP`...; `shared memory` for blocks passed between processes; null for the framework's allocator.",
        ),
        Column("device", "int32", "Device index; null for the host."),
        Column("change_bytes", "int64", "Bytes allocated (above 0) or released."),
        Column("allocated_bytes", "int64", "In use."),
        Column("reserved_bytes", "int64", "Held by the allocator."),
        Column("active_bytes", "int64", "In use or waiting for a stream."),
    ),
)
