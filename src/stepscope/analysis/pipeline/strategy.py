"""How a compiler divided a model over devices: stages, nodes with their strategy, edges within and between stages."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.parallel_graphs import (
    GRADIENTS,
    RECEIVE,
    REDISTRIBUTION,
    ROLES,
    SEND,
    StageGraph,
    data_edges,
    is_divided,
    stage_graphs,
    stage_of_ranks,
    transfers,
)
from stepscope.analysis.methods.parallel_layout import object_of
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import PARALLEL_GRAPHS, PARALLEL_NODES
from stepscope.tables.base import Column, schema_of

KINDS = ("operator", "parameter", "constant")
_STAGE = Column("stage", "int32", "Pipeline stage, from 0.", nullable=False, importance=90)
_RANKS = Column("ranks", "string", "Ranks of the stage, e.g. `0, 1`.", nullable=False, importance=80)

STAGES = columns(
    _STAGE,
    _RANKS,
    Column("recorded", "string", "Those whose graph was recorded; null if none was.", importance=28),
    Column("parallel_mode", "string", "As recorded, e.g. `semi_auto_parallel`; null if ranks differ.", importance=70),
    Column("operators", "int64", "Operators of its graph.", importance=65),
    Column("parameters", "int64", "Parameters of its graph.", importance=30),
    Column("constants", "int64", "Constants of its graph.", importance=26),
    Column("edges", "int64", "Inputs of its nodes that are nodes themselves.", importance=34),
    Column("divided", "int64", "Operators whose strategy divides an input.", importance=60),
    Column(
        "redistributions",
        "int64",
        "Operators that the compiler put in to divide a tensor in another way.",
        importance=46,
    ),
    Column(
        "gradient_aggregations",
        "int64",
        "Operators that the compiler put in to sum up gradients.",
        title="gradients",
        importance=45,
    ),
    Column("sends", "int64", "Sends to other stages.", importance=40),
    Column("receives", "int64", "Receives from other stages.", importance=39),
    Column("differing", "int64", "Nodes that are not the same on all its recorded ranks.", importance=50),
    nulls="recorded parallel_mode operators parameters constants edges divided redistributions gradient_aggregations "
    "sends receives differing",
)

NODES = columns(
    _STAGE,
    Column("node", "string", "Its name in the graph.", nullable=False, importance=88),
    Column("kind", "string", "What it is.", nullable=False, importance=72, values=KINDS),
    Column("type", "string", "Operator type.", importance=75),
    Column("name", "string", "Its place in the model.", importance=85),
    Column("scope", "string", "The part of the model that it belongs to."),
    Column("role", "string", "What the compiler put it in for; null for the model's own.", values=ROLES, importance=62),
    Column("strategy", "string", "How its inputs are divided: a list for each input, JSON.", importance=80),
    Column("given_strategy", "string", "The same as the user gave it."),
    Column("divided", "bool", "Whether that divides any input; null if it is unknown."),
    Column("group", "string", "Communication group.", importance=55),
    Column("group_ranks", "string", "Its ranks, as recorded.", importance=40),
    Column("peer", "int32", "Other side of a send or receive: a place in its group."),
    Column("tag", "int64", "Number that a send and its receive share."),
    Column("output_types", "list[string]", "Data types of its outputs."),
    Column("output_shapes", "string", "Shapes of its outputs, JSON.", importance=50),
    Column("inputs", "list[string]", "Nodes from which it takes its inputs.", importance=45),
    Column("unknown_inputs", "list[string]", "Inputs that are no nodes of the graph."),
    Column("attributes", "string", "Other attributes, JSON, on the lowest recorded rank of the stage."),
    Column("differing", "list[string]", "What is not the same on all recorded ranks of the stage.", importance=40),
    nulls="type name scope role strategy given_strategy divided group group_ranks peer tag output_types output_shapes "
    "attributes",
)

EDGES = columns(
    Column("stage", "int32", "Stage of the node that it comes from; null if that is not found.", importance=90),
    Column("source", "string", "That node.", importance=86),
    Column("source_name", "string", "Its place in the model.", importance=80),
    Column("to_stage", "int32", "Stage of the node that it leads to; null if that is not found.", importance=88),
    Column("target", "string", "That node.", importance=84),
    Column("target_name", "string", "Its place in the model.", importance=78),
    Column("input", "int32", "Which input of that node it is, from 0."),
    Column("between_stages", "bool", "True for a send and its receive.", nullable=False, importance=60),
    Column(
        "paired", "bool", "False for a send or receive whose other side is not found, or is several.", nullable=False
    ),
    nulls="stage source source_name to_stage target target_name input",
)

NO_STRATEGY = "no graph with its parallel strategy and no parallel sizes were recorded"


@analysis("job", STAGES, whole_job=True)
def strategy_stages(
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None = None,
    parallel_graphs: pl.LazyFrame | None = None,
    parallel_nodes: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Count what is in the graph of each pipeline stage: one row per stage, in order.

    Raises:
        Unavailable: If neither graphs nor parallel sizes were recorded.
    """
    stage_of = stage_of_ranks(ranks, groups, parallel_graphs, parallel_layout)
    modes = _modes(ranks, parallel_graphs)
    graphs = {one.stage: one for one in stage_graphs(PARALLEL_NODES.or_empty(parallel_nodes), stage_of)}
    if not graphs and len(set(stage_of.values())) < 2 and not any(modes.values()):
        raise Unavailable(NO_STRATEGY)
    rows = []
    for stage in sorted(set(stage_of.values())):
        members = [rank for rank, number in stage_of.items() if number == stage]
        found = {modes.get(rank) for rank in members} - {None}
        graph = graphs.get(stage)
        rows.append(
            {
                "stage": stage,
                "ranks": rank_list(members),
                "recorded": rank_list(graph.ranks) if graph else None,
                "parallel_mode": found.pop() if len(found) == 1 else None,
                **(_counts(graph) if graph else {}),
            }
        )
    schema = schema_of(STAGES)
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema=schema)


def _modes(ranks: pl.LazyFrame, parallel_graphs: pl.LazyFrame | None) -> dict[int, str | None]:
    """The parallel mode of each rank: of its graph, else of its recording."""
    found: dict[int, str | None] = {}
    for rank, text in ranks.select("rank", "parallelism").collect().iter_rows():
        stated = object_of(text).get("parallel_mode")
        found[rank] = stated if isinstance(stated, str) else None
    graphs = PARALLEL_GRAPHS.or_empty(parallel_graphs).select("rank", "parallel_mode").drop_nulls().collect()
    return {**found, **dict(graphs.iter_rows())}


def _counts(graph: StageGraph) -> dict[str, int]:
    nodes = graph.nodes
    kinds, roles = nodes["kind"].to_list(), nodes["role"].to_list()
    divided = [is_divided(text) for text in nodes["strategy"].to_list()]
    return {
        "operators": kinds.count("operator"),
        "parameters": kinds.count("parameter"),
        "constants": kinds.count("constant"),
        "edges": data_edges(nodes).height,
        "divided": divided.count(True),
        "redistributions": roles.count(REDISTRIBUTION),
        "gradient_aggregations": roles.count(GRADIENTS),
        "sends": roles.count(SEND),
        "receives": roles.count(RECEIVE),
        "differing": len(graph.differing),
    }


@analysis("job", NODES, whole_job=True)
def strategy_nodes(
    parallel_nodes: pl.LazyFrame,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None = None,
    parallel_graphs: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """List the nodes of each stage's graph with their strategy, as its lowest recorded rank has them: one row per stage
    and node, in the order of the file."""
    parts = []
    for graph in stage_graphs(parallel_nodes, stage_of_ranks(ranks, groups, parallel_graphs, parallel_layout)):
        known = set(graph.nodes["node"])
        taken = graph.nodes["inputs"].to_list()
        divided = [is_divided(text) for text in graph.nodes["strategy"].to_list()]
        texts = pl.List(pl.String)
        parts.append(
            graph.nodes.with_columns(
                stage=pl.lit(graph.stage, pl.Int32),
                divided=pl.Series(divided, dtype=pl.Boolean),
                inputs=pl.Series([[one for one in some or () if one in known] for some in taken], dtype=texts),
                unknown_inputs=pl.Series(
                    [[one for one in some or () if one not in known] for some in taken], dtype=texts
                ),
                differing=pl.Series([graph.differing.get(node, []) for node in graph.nodes["node"]], dtype=texts),
            ).select(names(NODES))
        )
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema_of(NODES))


@analysis("job", EDGES, whole_job=True)
def strategy_edges(
    parallel_nodes: pl.LazyFrame,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None = None,
    parallel_graphs: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """List the edges of the graphs: those between stages first, then those within each stage, in the order of the file.

    A send and a receive are joined if they alone share group and tag; others are listed with one side.
    """
    graphs = list(stage_graphs(parallel_nodes, stage_of_ranks(ranks, groups, parallel_graphs, parallel_layout)))
    if not graphs:
        return pl.DataFrame(schema=schema_of(EDGES))
    nodes = pl.concat([graph.nodes.with_columns(stage=pl.lit(graph.stage, pl.Int32)) for graph in graphs])
    found = [
        transfers(nodes)
        .rename({"node": "source"})
        .with_columns(
            input=pl.lit(None, pl.Int32),
            between_stages=pl.lit(value=True),
            paired=pl.all_horizontal(pl.col("source", "target").is_not_null()),
        )
    ]
    for graph in graphs:
        stage = pl.lit(graph.stage, pl.Int32)
        inner = data_edges(graph.nodes).rename({"node": "target"})
        found.append(
            inner.with_columns(
                stage=stage, to_stage=stage, between_stages=pl.lit(value=False), paired=pl.lit(value=True)
            )
        )
    order = [name for name in names(EDGES) if not name.endswith("_name")]
    edges = pl.concat([part.select(order) for part in found])
    named = nodes.select("stage", "node", "name")
    sources = named.rename({"node": "source", "name": "source_name"})
    targets = named.rename({"stage": "to_stage", "node": "target", "name": "target_name"})
    joined = edges.join(sources, on=["stage", "source"], how="left", maintain_order="left")
    return joined.join(targets, on=["to_stage", "target"], how="left", maintain_order="left").select(names(EDGES))
