"""The `host_usage` table."""

from stepscope.tables.base import RANK, Column, Table

HOST_USAGE = Table(
    name="host_usage",
    doc="One row per sample of the CPU use of host, process or operator.",
    key=(
        "rank",
        "scope",
        "time_ns",
    ),
    columns=(
        RANK,
        Column("time_ns", "int64", "ns since the epoch.", nullable=False),
        Column("scope", "string", "`host`, `process` or an operator's name.", nullable=False),
        Column("user_ratio", "float64", "Share of CPU time in user code."),
        Column("system_ratio", "float64", "Share in the kernel."),
        Column("io_ratio", "float64", "Share waiting for IO."),
        Column("idle_ratio", "float64", "Share idle."),
    ),
)
