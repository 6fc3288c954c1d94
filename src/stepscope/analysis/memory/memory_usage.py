"""Memory in use: by node of a compiled graph, or over time as recorded by an allocator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.memory_points import of_nodes, of_times
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of, with_schema

COLUMNS = columns(
    "rank graph node",
    meaning("time_ns", "Time of the change; null for a graph."),
    "step phase component device",
    meaning("name", "Name of the node."),
    meaning("full_name", "Full name of the node."),
    meaning("size_bytes", "Change: positive if allocated, negative if released."),
    meaning("allocations", "Number of tensors that the node allocates."),
    Column("allocated_bytes", "int64", "In use, without the static part."),
    "static_bytes",
    Column("total_bytes", "int64", "In use, including the static part."),
    Column("reserved_bytes", "int64", "Reserved by the allocator."),
    Column("active_bytes", "int64", "In use or waiting for a stream."),
    Column("mark", "string", "`forward_start` or `backward_end` at these points; else null."),
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
    """List the curve of memory in use.

    For a compiled graph, each node is a point: the memory in use while it ran, as stated by the source (`total_bytes`,
    including the static part), or else the static part plus all tensors alive. For an allocator, each change is a
    point.

    Returns:
        One row per node of a graph, or per change over time.

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
        raise Unavailable("neither memory of a compiled graph nor of an allocator was recorded")
    return rows
