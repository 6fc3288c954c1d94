"""The `stacks` table."""

from stepscope.tables.base import RANK, Column, Table

STACKS = Table(
    name="stacks",
    doc="Call stacks, each once.",
    key=(
        "rank",
        "stack",
    ),
    columns=(
        RANK,
        Column("stack", "int64", "Number of the stack.", nullable=False),
        Column("text", "string", "Frames, innermost first, one a line.", nullable=False),
    ),
)
