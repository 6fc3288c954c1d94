"""Compiled graphs of ranks put together by pipeline stage, and how their nodes are joined."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from stepscope.analysis.methods.memberships import stages_of
from stepscope.tables import GROUPS, PARALLEL_GRAPHS
from stepscope.text_columns import filled_in

COMPARED = (
    *("kind", "type", "name", "scope", "instance", "given_strategy", "strategy", "group", "group_ranks", "peer", "tag"),
    *("output_types", "output_shapes", "inputs", "attributes"),
)
"""What nodes of one name are expected to have in common on all ranks of a stage."""

GRADIENTS, REDISTRIBUTION, SEND, RECEIVE = "gradient aggregation", "redistribution", "send", "receive"
COMMUNICATION = "communication"
ROLES = (GRADIENTS, REDISTRIBUTION, SEND, RECEIVE, COMMUNICATION)

ROLE = (
    pl.when(pl.col("instance").str.contains("grad_mirror"))
    .then(pl.lit(GRADIENTS))
    .when(pl.col("instance").str.contains("redistribution_op"))
    .then(pl.lit(REDISTRIBUTION))
    .when(pl.col("type") == "Send")
    .then(pl.lit(SEND))
    .when(pl.col("type") == "Receive")
    .then(pl.lit(RECEIVE))
    .when(pl.col("group").is_not_null())
    .then(pl.lit(COMMUNICATION))
)
"""What a compiler put an operator in for; null for operators of the model itself."""


@dataclass
class StageGraph:
    """The graph of a stage: that of its lowest recorded rank, and where others differ from it.

    Args:
        stage: Number of the stage.
        nodes: Rows of `parallel_nodes` of that rank, in order of position, with `role`.
        ranks: Recorded ranks of the stage.
        differing: Name of a node to what differs: columns, or `missing` or `added` on some rank.
    """

    stage: int
    nodes: pl.DataFrame
    ranks: list[int] = field(default_factory=list)
    differing: dict[str, list[str]] = field(default_factory=dict)


def stage_of_ranks(
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    parallel_graphs: pl.LazyFrame | None,
    layout: pl.DataFrame | None = None,
) -> dict[int, int]:
    """The pipeline stage of each rank, recorded or not: by its graph, else as `stages_of`, else 0."""
    known = ranks.collect()
    listed = stages_of(known, GROUPS.or_empty(groups).collect(), layout)
    stated = PARALLEL_GRAPHS.or_empty(parallel_graphs).select("rank", "stage").drop_nulls().collect()
    found = {**dict.fromkeys(known["rank"].drop_nulls().to_list(), 0), **listed, **dict(stated.iter_rows())}
    return dict(sorted(found.items()))


def stage_graphs(parallel_nodes: pl.LazyFrame, stage_of: dict[int, int]) -> Iterator[StageGraph]:
    """The graph of each stage, in order; one rank's nodes are held beside those of its stage."""
    having = parallel_nodes.select(pl.col("rank").unique().sort()).collect()["rank"].to_list()
    for stage in sorted({stage_of.get(rank, 0) for rank in having}):
        members = [rank for rank in having if stage_of.get(rank, 0) == stage]
        first, *others = members
        graph = StageGraph(stage, _nodes(parallel_nodes, first), members)
        for rank in others:
            _compare(graph, _nodes(parallel_nodes, rank))
        graph.differing = {name: sorted(graph.differing[name]) for name in sorted(graph.differing)}
        yield graph


def _nodes(parallel_nodes: pl.LazyFrame, rank: int) -> pl.DataFrame:
    return parallel_nodes.filter(pl.col("rank") == rank).sort("position").with_columns(role=ROLE).collect()


def _compare(graph: StageGraph, nodes: pl.DataFrame) -> None:
    """Note where another rank's nodes differ."""
    mine, theirs = (rows.select("node", *COMPARED, here=True) for rows in (graph.nodes, nodes))
    both = mine.join(theirs, on="node", how="full", coalesce=True, suffix="_other")
    lone = both.filter(pl.col("here").is_null() | pl.col("here_other").is_null())
    for node, here in lone.select("node", "here").iter_rows():
        _note(graph, node, "added" if here is None else "missing")
    shared = both.filter(pl.col("here") & pl.col("here_other"))
    for name in COMPARED:
        for node in shared.filter(pl.col(name).ne_missing(pl.col(f"{name}_other")))["node"]:
            _note(graph, node, name)


def _note(graph: StageGraph, node: str, what: str) -> None:
    found = graph.differing.setdefault(node, [])
    if what not in found:
        found.append(what)


def data_edges(nodes: pl.DataFrame) -> pl.DataFrame:
    """Edges within a graph: `source`, `node` and `input` (its place among the node's inputs); of known nodes only."""
    taken = nodes.select("node", "position", source="inputs").explode("source").drop_nulls("source")
    placed = taken.with_columns(input=pl.int_range(pl.len(), dtype=pl.Int32).over("node"))
    known = nodes.select(source="node")
    return placed.join(known, on="source", how="semi").sort("position", "input").select("source", "node", "input")


def transfers(nodes: pl.DataFrame) -> pl.DataFrame:
    """Sends of a stage and the receives of another one that share group and tag: `stage`, `node`, `to_stage`, `target`;
    of those whose other side is not found, or is several, that side is null.

    Args:
        nodes: Nodes of all stages: `stage`, `node`, `role`, `group`, `tag`.
    """
    ends = nodes.filter(pl.col("role").is_in([SEND, RECEIVE])).select("stage", "node", "role", "group", "tag")
    keyed = ends.with_columns(
        call=pl.when(pl.all_horizontal(pl.col("group", "tag").is_not_null())).then(filled_in("{} {}", "group", "tag"))
    )
    is_one = (pl.len().over("call", "role") == 1) & pl.col("call").is_not_null()
    sides = keyed.with_columns(call=pl.when(is_one).then("call"))
    sent, received = (sides.filter(role=role) for role in (SEND, RECEIVE))
    both = sent.select("call", "stage", "node").join(
        received.select("call", to_stage="stage", target="node"), on="call", how="full", coalesce=True
    )
    return both.drop("call").sort("stage", "to_stage", "node", "target", nulls_last=True)


def is_divided(strategy: str | None) -> bool | None:
    """Whether a strategy divides any dimension of an input; None if it is unknown."""
    if strategy is None:
        return None
    try:
        found = json.loads(strategy)
    except ValueError:
        return None
    return any(value != 1 for value in _numbers(found))


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, int):
        yield value
