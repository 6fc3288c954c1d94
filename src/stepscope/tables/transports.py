"""The `transports` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

TRANSPORTS = Table(
    name="transports",
    doc="One row per communication call and transport of a rank: what it moved and how long that took.",
    key=(
        "rank",
        "step",
        "group",
        "name",
        "transport",
        "packet_bytes",
    ),
    columns=(
        RANK,
        STEP,
        Column("group", "string", "Process group key."),
        Column("name", "string", "Call, as in `collectives.name`.", nullable=False),
        Column("transport", "string", "`SDMA`, `RDMA`, `HCCS`, `PCIE`, `SIO`.", nullable=False),
        Column("size_bytes", "int64", "Bytes moved."),
        Column("duration_ns", "int64", "Transit time, ns."),
        Column("packet_bytes", "int64", "Packet size of this row; null where the source gives no distribution."),
        Column("packets", "int64", "Packets of that size."),
    ),
)
