"""Compiled graphs: their memory plans, nodes and tensors."""

from stepscope.tables.base import Column, Table

GRAPHS = Table(
    name="graphs",
    doc="One row per compiled graph with a memory plan.",
    key=("graph",),
    columns=(
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("static_bytes", "int64", "Memory held as long as the graph, e.g. parameters."),
        Column("forward_start", "int32", "Node at which the forward pass starts."),
        Column("backward_end", "int32", "Node at which the backward pass ends."),
    ),
)

GRAPH_NODES = Table(
    name="graph_nodes",
    doc="One row per node of a graph in execution order, with the memory in use.",
    key=("graph", "node"),
    columns=(
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("node", "int32", "Position in execution order, from 0.", nullable=False),
        Column("name", "string", "Short name."),
        Column("full_name", "string", "Its place in the model."),
        Column("size_bytes", "int64", "Memory that it allocates: outputs and workspace."),
        Column(
            "allocated_bytes",
            "int64",
            "Net change of the memory in use, as recorded.",
        ),
        Column("total_bytes", "int64", "Memory in use while it runs, as recorded, including static memory."),
        Column("allocations", "int64", "Tensors that it allocates."),
        Column("inputs", "string", "Format, data type and shape of its inputs, JSON as recorded."),
    ),
)

GRAPH_TENSORS = Table(
    name="graph_tensors",
    doc="One row per tensor of a graph with its lifetime in nodes.",
    key=("graph", "tensor"),
    columns=(
        Column("graph", "int64", "Number of the graph.", nullable=False),
        Column("tensor", "int64", "Number of the tensor.", nullable=False),
        Column("node", "int32", "Node that creates it."),
        Column("name", "string", "Name."),
        Column("type", "string", "`OUTPUT`, `WORKSPACE`... as recorded."),
        Column("data_type", "string", "Data type."),
        Column("format", "string", "Data format."),
        Column("shape", "string", "Shape as recorded."),
        Column("size_bytes", "int64", "Size.", nullable=False),
        Column(
            "lifetime",
            "string",
            "As recorded: `LifeLongGraphAll` (whole graph), `LifeLongGraphStart` (from its start), `LifeLongGraphEnd` (to its end), otherwise null.",
        ),
        Column("life_start", "int32", "First node of its lifetime."),
        Column("life_end", "int32", "Last node of its lifetime."),
    ),
)
