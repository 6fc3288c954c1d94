"""The `collectives` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

POINT_TO_POINT = ("send", "recv", "send_recv")
"""Operations between two ranks."""

COLLECTIVES = Table(
    name="collectives",
    doc="One row per rank and collective or point-to-point call.",
    key=(
        "rank",
        "collective",
    ),
    columns=(
        RANK,
        Column("collective", "int64", "Number of the row, unique in its rank, in start order.", nullable=False),
        Column("group", "string", "Process group key; the same on every member."),
        Column(
            "sequence",
            "int64",
            "Position in its group on this rank, from 0; equal on all members of one call.",
            nullable=False,
        ),
        Column(
            "operation",
            "string",
            "`all_reduce`, `all_gather`, `reduce_scatter`, `broadcast`, `all_to_all`, `reduce`, `gather`, `scatter`, `barrier`, `send`, `recv`, `send_recv` or the recorded word.",
            nullable=False,
        ),
        Column("name", "string", "Name as recorded.", nullable=False),
        Column("size_bytes", "int64", "Payload of this rank."),
        Column("element_type", "string", "Data type."),
        Column("group_size", "int32", "Ranks in the group."),
        Column("peer", "int32", "Global rank of the other side of a point-to-point call."),
        Column("start_ns", "int64", "When this rank entered the call, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Length in ns.", nullable=False),
        Column("wait_ns", "int64", "Waiting as the source states it."),
        Column("transmit_ns", "int64", "Transmission as the source states it."),
        Column("synchronization_ns", "int64", "Wait before the first transfer, as the source states it."),
        Column("on_device", "bool", "True for device communication, false for host (gloo).", nullable=False),
        Column("stream", "int32", "Device stream."),
        Column("correlation", "int64", "Ties the launch to the kernel."),
        STEP,
    ),
)
