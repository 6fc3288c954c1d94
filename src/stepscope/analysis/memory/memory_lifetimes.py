"""How long the largest tensors of compiled graphs and the largest blocks of allocators live."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.memory_points import lives
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of, with_schema

LARGEST = 200
"""Tensors or blocks of each graph, allocator and device."""

COLUMNS = columns(
    "rank graph component device",
    Column("tensor", "int64", "Number of the tensor in its graph."),
    meaning("name", "Name of the tensor, or of the operator that allocated the block."),
    Column("made_by", "string", "Node that produced the tensor."),
    meaning("size_bytes", "Size."),
    meaning("type", "Kind of tensor as stated, e.g. `OUTPUT`."),
    "data_type",
    Column("shape", "string", "Shape as recorded."),
    Column("lifetime", "string", "How long it lives, as stated, e.g. `LifeLongGraphAll`."),
    Column("first_node", "int32", "First node at which it is alive; null if from the start of the graph."),
    Column("last_node", "int32", "Last node at which it is alive; null if to the end of the graph."),
    Column("allocation_ns", "int64", "When it was allocated.", moment=True),
    Column("release_ns", "int64", "When it was released; null if that is not in the recording.", moment=True),
    Column("life_ns", "int64", "Time between allocation and release."),
    Column("others", "int64", "Number of smaller tensors or blocks of its graph, or allocator and device, left out."),
    keep="name size_bytes life_ns first_node last_node allocation_ns release_ns made_by shape",
)

_PLACE = ["rank", "graph", "component", "device"]
_IN_ORDER = ["tensor", "allocation_ns", "release_ns", "name"]
_OF_TENSORS = ("rank", "graph", "tensor", "node", "name", "size_bytes", "type", "data_type", "shape", "lifetime")
_OF_BLOCKS = ("rank", "component", "device", "name", "size_bytes", "allocation_ns", "release_ns")


@analysis("rank", COLUMNS, together=True)
def memory_lifetimes(
    graph_tensors: pl.LazyFrame | None,
    graph_nodes: pl.LazyFrame | None,
    allocations: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """List the largest tensors of each graph and blocks of each allocator and device, with their lifetimes.

    Returns:
        One row per tensor or block, largest first. Tensors have a lifetime in nodes, blocks one in ns. A block whose
        release is not in the recording is held to its end.

    Raises:
        Unavailable: If neither tensors nor blocks were recorded.
    """
    parts: list[pl.DataFrame] = []
    if graph_tensors is not None:
        largest = _largest(lives(graph_tensors).select(*_OF_TENSORS, first_node="first", last_node="last"))
        if graph_nodes is not None:
            makers = graph_nodes.select("rank", "graph", "node", made_by=pl.coalesce("full_name", "name")).collect()
            largest = largest.join(makers, on=["rank", "graph", "node"], how="left", maintain_order="left")
        parts.append(largest)
    if allocations is not None:
        blocks = _largest(allocations.select(_OF_BLOCKS))
        parts.append(blocks.with_columns(life_ns=pl.col("release_ns") - pl.col("allocation_ns")))
    schema = schema_of(COLUMNS)
    rows = pl.concat([pl.DataFrame(schema=schema), *(with_schema(part, schema) for part in parts)])
    numbers = ranks_of(RANKS.or_empty(ranks))
    silent = without_rows(numbers, rows)
    if silent or not numbers:
        raise Unavailable("neither tensors of a graph nor blocks of an allocator were recorded", of=silent)
    return rows.select(names(COLUMNS)).sort(
        *_PLACE, -pl.col("size_bytes"), *_IN_ORDER, nulls_last=True, maintain_order=True
    )


def _largest(rows: pl.LazyFrame) -> pl.DataFrame:
    """The largest of each place, and how many `others` there are. There may be millions, so not all are in memory."""
    kept = rows.head(0).with_columns(others=pl.lit(0, pl.Int64)).collect()
    for batch in batches(rows):
        kept = _first(pl.concat([kept, batch.with_columns(others=pl.lit(0, pl.Int64))]))
    return kept


def _first(rows: pl.DataFrame) -> pl.DataFrame:
    place = [name for name in _PLACE if name in rows.columns]
    order = [name for name in _IN_ORDER if name in rows.columns]
    ordered = rows.sort(*place, -pl.col("size_bytes"), *order, nulls_last=True, maintain_order=True)
    # rows kept before say how many were left out then
    left = pl.col("others").max() + (pl.len().cast(pl.Int64) - LARGEST).clip(0)
    return (
        ordered.with_columns(others=left.over(place).cast(pl.Int64)).group_by(place, maintain_order=True).head(LARGEST)
    )
