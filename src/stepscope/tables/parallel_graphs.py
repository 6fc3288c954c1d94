"""Graphs with their parallel strategy: how a compiler has divided a model over devices."""

from stepscope.tables.base import RANK, Column, Table

PARALLEL_GRAPHS = Table(
    name="parallel_graphs",
    doc="One row per rank whose compiled graph was recorded with its parallel strategy.",
    key=("rank",),
    columns=(
        RANK,
        Column("stage", "int32", "Pipeline stage of the rank, as recorded, from 0."),
        Column("parallel_mode", "string", "As recorded, e.g. `semi_auto_parallel`."),
        Column("stage_devices", "string", "Ranks of each stage as recorded, JSON; null if none are listed."),
    ),
)

PARALLEL_NODES = Table(
    name="parallel_nodes",
    doc="One row per node of such a graph.",
    key=("rank", "node"),
    columns=(
        RANK,
        Column("node", "string", "Its name in the graph, to which `inputs` refer.", nullable=False),
        Column("position", "int32", "Its place in the file, from 0.", nullable=False),
        Column("kind", "string", "`operator`, `parameter` or `constant`.", nullable=False),
        Column("type", "string", "Operator type."),
        Column("name", "string", "Its place in the model."),
        Column("scope", "string", "The part of the model that it belongs to."),
        Column("instance", "string", "What the compiler calls this use of the operator, e.g. `redistribution_op`."),
        Column(
            "given_strategy", "string", "How its inputs are divided, as the user says, JSON: a list for each input."
        ),
        Column("strategy", "string", "The same as the compiler chose it; what the user says if that is not recorded."),
        Column("group", "string", "Communication group of a communication operator."),
        Column("group_ranks", "string", "Its ranks, as recorded, e.g. `0-1`."),
        Column("peer", "int32", "The other side of a send or receive, as recorded: a place in its group."),
        Column("tag", "int64", "Number that a send and its receive share."),
        Column("output_types", "list[string]", "Data types of its outputs."),
        Column("output_shapes", "string", "Shapes of its outputs, JSON; of several outputs a list of shapes."),
        Column("inputs", "list[string]", "Nodes from which it takes its inputs, in order."),
        Column("attributes", "string", "All other attributes that are no longer than 1000 characters, JSON."),
    ),
)
