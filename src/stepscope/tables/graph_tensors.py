"""The `graph_tensors` table."""

from stepscope.tables.base import RANK, Column, Table

GRAPH_TENSORS = Table(
    name="graph_tensors",
    doc="One row per tensor of a graph with its lifetime in nodes.",
    key=(
        "rank",
        "graph",
        "tensor",
    ),
    columns=(
        RANK,
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("tensor", "int64", "Number of the tensor.", nullable=False),
        Column("node", "int32", "Node that makes it; null where unknown."),
        Column("name", "string", "Name."),
        Column("type", "string", "`OUTPUT`, `WORKSPACE`... as stated."),
        Column("data_type", "string", "Data type."),
        Column("format", "string", "Data format."),
        Column("shape", "string", "Shape as recorded."),
        Column("size_bytes", "int64", "Size.", nullable=False),
        Column(
            "lifetime",
            "string",
            "As stated: `LifeLongGraphAll` (whole graph), `LifeLongGraphStart` (from its start), `LifeLongGraphEnd` (to its end), else null.",
        ),
        Column("life_start", "int32", "First node at which it lives."),
        Column("life_end", "int32", "Last node at which it lives."),
    ),
)
