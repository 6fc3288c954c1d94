"""How much memory was in use: node by node of a compiled graph, or over time as an allocator recorded it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.memory_points import of_nodes, of_times
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

RESULT = {
    "rank": pl.Int32(),
    "graph": pl.Int64(),
    "node": pl.Int32(),
    "time_ns": pl.Int64(),
    "step": pl.Int32(),
    "phase": pl.String(),
    "component": pl.String(),
    "device": pl.Int32(),
    "name": pl.String(),
    "full_name": pl.String(),
    "size_bytes": pl.Int64(),
    "allocations": pl.Int64(),
    "allocated_bytes": pl.Int64(),
    "static_bytes": pl.Int64(),
    "total_bytes": pl.Int64(),
    "reserved_bytes": pl.Int64(),
    "active_bytes": pl.Int64(),
    "mark": pl.String(),
}


@analysis("rank")
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
        `rank`, `graph` and `node`, or `time_ns`, `step` and `phase` (`interval` before the forward pass,
        `forward and backward`, `tail` after it; null where they are not marked); `component` and `device`; `name`,
        `full_name` of the node; `size_bytes` (the change) and `allocations`; `allocated_bytes`, `static_bytes`,
        `total_bytes` (both), `reserved_bytes`, `active_bytes`; `mark` (`forward_start` or `backward_end`, at the node,
        or at the first point from that time on in its step).

    Raises:
        Unavailable: If no memory was recorded.
    """
    parts = []
    if graph_nodes is not None:
        parts.append(of_nodes(graph_nodes, graphs, graph_tensors))
    if memory_curve is not None:
        parts.append(of_times(memory_curve, steps))
    rows = pl.concat([part.select(_columns(part)) for part in parts]) if parts else pl.DataFrame()
    if rows.is_empty():
        raise Unavailable("neither the memory of a compiled graph nor that of an allocator was recorded")
    return rows


def _columns(part: pl.DataFrame) -> list[pl.Expr]:
    return [
        (pl.col(name) if name in part.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in RESULT.items()
    ]
