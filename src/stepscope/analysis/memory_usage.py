"""How much memory was in use: node by node of a compiled graph, or over time as an allocator recorded it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.memory_lives import node_totals
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

FORWARD_START, BACKWARD_END = "forward_start", "backward_end"

PLACE = ("rank", "graph", "component", "device")
"""What has a curve of its own."""


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
        parts.append(_of_nodes(graph_nodes, graphs, graph_tensors))
    if memory_curve is not None:
        parts.append(_of_times(memory_curve, steps))
    rows = pl.concat([part.select(_columns(part)) for part in parts]) if parts else pl.DataFrame()
    if rows.is_empty():
        raise Unavailable("neither the memory of a compiled graph nor that of an allocator was recorded")
    return rows


def _columns(part: pl.DataFrame) -> list[pl.Expr]:
    return [
        (pl.col(name) if name in part.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in RESULT.items()
    ]


def _of_nodes(nodes: pl.LazyFrame, graphs: pl.LazyFrame | None, tensors: pl.LazyFrame | None) -> pl.DataFrame:
    """One row a node of each graph."""
    rows = nodes.sort("graph", "node").collect()
    facts = {"static_bytes": pl.Int64(), "forward_start": pl.Int32(), "backward_end": pl.Int32()}
    if graphs is not None:
        rows = rows.join(graphs.select("rank", "graph", *facts).collect(), on=["rank", "graph"], how="left")
    else:
        rows = rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in facts.items())
    rows = rows.join(node_totals(rows, tensors), on=["rank", "graph", "node"], how="left", maintain_order="left")
    static = pl.col("static_bytes").fill_null(0)
    allocated = pl.coalesce("allocated_bytes", pl.col("total_bytes") - static, "live_bytes")
    mark = (
        pl.when(pl.col("node") == pl.col("forward_start"))
        .then(pl.lit(FORWARD_START))
        .when(pl.col("node") == pl.col("backward_end"))
        .then(pl.lit(BACKWARD_END))
    )
    return rows.with_columns(
        allocated_bytes=allocated,
        total_bytes=pl.coalesce("total_bytes", allocated + static),
        mark=mark,
    )


def _of_times(curve: pl.LazyFrame, steps: pl.LazyFrame | None) -> pl.DataFrame:
    """One row a change."""
    rows = (
        curve.sort("time_ns", maintain_order=True)
        .with_columns(size_bytes=pl.col("change_bytes"), total_bytes=pl.col("allocated_bytes"))
        .collect()
    )
    if steps is None:
        return rows
    ranges = (
        steps.select("step", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns").sort("start_ns").collect()
    )
    found = rows.join_asof(ranges, left_on="time_ns", right_on="start_ns", check_sortedness=False).with_columns(
        inside=pl.col("time_ns") <= pl.col("end_ns")
    )
    time, begun, ended = pl.col("time_ns"), pl.col("forward_start_ns"), pl.col("backward_end_ns")
    phase = (
        pl.when(time < begun)
        .then(pl.lit("interval"))
        .when(time <= ended)
        .then(pl.lit("forward and backward"))
        .when(time > ended)
        .then(pl.lit("tail"))
    )
    return found.with_columns(step=pl.when("inside").then("step"), phase=pl.when("inside").then(phase)).with_columns(
        mark=_first_in("forward and backward", FORWARD_START, "tail", BACKWARD_END)
    )


def _first_in(phase: str, mark: str, later: str, later_mark: str) -> pl.Expr:
    """A mark at the first point of a phase in its step and place."""
    first = pl.int_range(pl.len()).over("step", "phase", "component", "device") == 0
    return (
        pl.when(first & (pl.col("phase") == phase))
        .then(pl.lit(mark))
        .when(first & (pl.col("phase") == later))
        .then(pl.lit(later_mark))
    )
