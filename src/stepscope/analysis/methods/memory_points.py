"""The points of memory curves: nodes of compiled graphs, and changes of an allocator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.tensor_lifetimes import node_totals

FORWARD_START, BACKWARD_END = "forward_start", "backward_end"

PLACE = ("rank", "graph", "component", "device")
"""Columns that identify a curve."""


def of_nodes(nodes: pl.LazyFrame, graphs: pl.LazyFrame | None, tensors: pl.LazyFrame | None) -> pl.DataFrame:
    """Nodes of graphs with `allocated_bytes`, `static_bytes`, `total_bytes` and `mark`, in order of execution."""
    rows = nodes.sort("rank", "graph", "node").collect()
    facts = {"static_bytes": pl.Int64(), "forward_start": pl.Int32(), "backward_end": pl.Int32()}
    if graphs is not None:
        rows = rows.join(
            graphs.select("rank", "graph", *facts).collect(), on=["rank", "graph"], how="left", maintain_order="left"
        )
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


def of_times(curve: pl.LazyFrame, steps: pl.LazyFrame | None) -> pl.DataFrame:
    """Changes of an allocator with `size_bytes`, `total_bytes`, `step`, `phase` and `mark`, in order of time."""
    rows = (
        curve.sort("rank", "time_ns", "component", "device", maintain_order=True)
        .with_columns(size_bytes=pl.col("change_bytes"), total_bytes=pl.col("allocated_bytes"))
        .collect()
    )
    if steps is None:
        return rows
    ranges = (
        steps.select("step", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns")
        .sort("start_ns", "end_ns", "step")
        .collect()
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
    """A mark at the first point of a phase in its step and curve."""
    first = pl.int_range(pl.len()).over("step", "phase", "component", "device") == 0
    return (
        pl.when(first & (pl.col("phase") == phase))
        .then(pl.lit(mark))
        .when(first & (pl.col("phase") == later))
        .then(pl.lit(later_mark))
    )
