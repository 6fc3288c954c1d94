"""The `counters` table."""

from stepscope.tables.base import RANK, Column, Table

COUNTERS = Table(
    name="counters",
    doc="One row per sample of a counter.",
    key=(
        "rank",
        "name",
        "time_ns",
    ),
    columns=(
        RANK,
        Column("time_ns", "int64", "ns since the epoch.", nullable=False),
        Column("name", "string", "Counter, with its unit: `ai_core_frequency_mhz`...", nullable=False),
        Column("device", "int32", "Device index."),
        Column("value", "float64", "Sample.", nullable=False),
    ),
)
