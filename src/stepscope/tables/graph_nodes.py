"""The `graph_nodes` table."""

from stepscope.tables.base import RANK, Column, Table

GRAPH_NODES = Table(
    name="graph_nodes",
    doc="One row per node of a graph in order of execution, with the memory in use at it.",
    key=(
        "rank",
        "graph",
        "node",
    ),
    columns=(
        RANK,
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("node", "int32", "Place in the order of execution, from 0.", nullable=False),
        Column("name", "string", "Short name."),
        Column("full_name", "string", "Its place in the model."),
        Column("size_bytes", "int64", "What it allocates: outputs and workspace."),
        Column(
            "allocated_bytes",
            "int64",
            "What it adds to the memory in use, net of what is released at it, as the source states it.",
        ),
        Column("total_bytes", "int64", "In use while it runs as the source states it, with the static part."),
        Column("allocations", "int64", "Tensors that it allocates."),
        Column("inputs", "string", "Format, data type and shape of what it takes, JSON as recorded."),
    ),
)
