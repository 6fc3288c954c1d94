"""The `links` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

LINKS = Table(
    name="links",
    doc="One row per link and communication call (or total) of a rank.",
    key=(
        "rank",
        "step",
        "group",
        "operation",
        "source",
        "destination",
    ),
    columns=(
        RANK,
        STEP,
        Column("group", "string", "Process group key."),
        Column("operation", "string", "As in `collectives`."),
        Column("name", "string", "Call that the figures come from; null for totals of all calls."),
        Column("source", "int32", "Global rank that sends.", nullable=False),
        Column("destination", "int32", "Global rank that receives.", nullable=False),
        Column("transport", "string", "`HCCS`, `RDMA`, `PCIE`, `SIO`, `LOCAL`..."),
        Column("size_bytes", "int64", "Bytes moved.", nullable=False),
        Column("duration_ns", "int64", "Time on the link, ns.", nullable=False),
        Column("wait_ns", "int64", "Part of it that was waiting for the other side, where told apart."),
    ),
)
