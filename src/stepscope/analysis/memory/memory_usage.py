"""How much memory was in use: node by node of a compiled graph, or over time as an allocator recorded it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.memory_points import of_nodes, of_times
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of, with_schema

COLUMNS = columns(
    "rank graph node",
    meaning("time_ns", "When; null for a graph."),
    "step phase component device",
    meaning("name", "Name of the node."),
    meaning("full_name", "Full name of the node."),
    meaning("size_bytes", "Change: above 0 allocated, below 0 released."),
    meaning("allocations", "Number of tensors that the node allocates."),
    Column("allocated_bytes", "int64", "In use, without the static part."),
    "static_bytes",
    Column("total_bytes", "int64", "In use, static part included."),
    Column("reserved_bytes", "int64", "Held by the allocator."),
    Column("active_bytes", "int64", "In use or waiting for a stream."),
    Column("mark", "string", "`forward_start` or `backward_end` at the point where these are; else null."),
    keep="time_ns total_bytes step node size_bytes allocated_bytes reserved_bytes name",
)


@analysis("rank", COLUMNS)
def memory_usage(
    graph_nodes: pl.LazyFrame | None,
    graphs: pl.LazyFrame | None,
    graph_tensors: pl.LazyFrame | None,
    memory_curve: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Give the curve of memory in use.

    Of a compiled graph each node is a point: what was in use while it ran, as the source states it (`total_bytes`, with
    the static part), else the static part and all tensors alive at it. Of an allocator each change is one.

    Returns:
        One row for each node of a graph, or for each change over time.

    Raises:
        Unavailable: If no memory was recorded.
    """
    parts = []
    if graph_nodes is not None:
        parts.append(of_nodes(graph_nodes, graphs, graph_tensors))
    if memory_curve is not None:
        parts.append(of_times(memory_curve, steps))
    rows = pl.concat([with_schema(part, schema_of(COLUMNS)) for part in parts]) if parts else pl.DataFrame()
    if rows.is_empty():
        raise Unavailable("neither the memory of a compiled graph nor that of an allocator was recorded")
    return rows
