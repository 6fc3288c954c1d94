"""The `graphs` table."""

from stepscope.tables.base import RANK, Column, Table

GRAPHS = Table(
    name="graphs",
    doc="One row per compiled graph with a memory plan.",
    key=(
        "rank",
        "graph",
    ),
    columns=(
        RANK,
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("static_bytes", "int64", "Memory that lives as long as the graph: parameters and the like."),
        Column("forward_start", "int32", "Node at which the forward pass starts."),
        Column("backward_end", "int32", "Node at which the backward pass ends."),
    ),
)
