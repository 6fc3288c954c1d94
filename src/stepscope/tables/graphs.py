"""Compiled graphs: their memory plans, nodes and tensors."""

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
