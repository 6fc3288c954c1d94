"""The `communication_totals` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

COMMUNICATION_TOTALS = Table(
    name="communication_totals",
    doc="One row per rank and step (name null: all its calls), and per call where a source says so: what communication cost without waiting, and waiting.",
    key=(
        "rank",
        "step",
        "name",
    ),
    columns=(
        RANK,
        STEP,
        Column("name", "string", "Call; null for the whole step."),
        Column("duration_ns", "int64", "Communication without waiting, ns.", nullable=False),
        Column("wait_ns", "int64", "Waiting, ns."),
    ),
)
