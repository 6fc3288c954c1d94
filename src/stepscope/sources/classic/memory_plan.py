"""The memory plan of compiled graphs, and how it becomes rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stepscope.sources.base import Sink
from stepscope.tables import GRAPH_NODES, GRAPH_TENSORS, GRAPHS, Table
from stepscope.tables.base import with_schema

GIB = 1 << 30
_MOST_GIB = 1 << 32
NO_LIFETIME = "LifeLongNone"


@dataclass
class GraphPlan:
    """One graph.

    Args:
        graph: Its number.
        static_bytes: Memory that lives as long as the graph.
        forward_start: Node at which the forward pass starts.
        backward_end: Node at which the backward pass ends.
        nodes: Rows of `graph_nodes`, without the graph.
        tensors: Rows of `graph_tensors`, without the graph.
        lost: How many nodes and tensors have no size that can be read.
    """

    graph: int
    static_bytes: int | None = None
    forward_start: int | None = None
    backward_end: int | None = None
    nodes: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[dict[str, Any]] = field(default_factory=list)
    lost: int = 0

    @property
    def peak_bytes(self) -> int | None:
        """The most that is stated to be in use at any node."""
        return max((node["total_bytes"] for node in self.nodes if node.get("total_bytes") is not None), default=None)


def write_plans(plans: Sequence[GraphPlan], sink: Sink) -> None:
    """Write the rows of `graphs`, `graph_nodes` and `graph_tensors`."""
    for plan in plans:
        about = {name: getattr(plan, name) for name in ("graph", "static_bytes", "forward_start", "backward_end")}
        _write(GRAPHS, [about], plan.graph, sink)
        _write(GRAPH_NODES, plan.nodes, plan.graph, sink)
        _write(GRAPH_TENSORS, plan.tensors, plan.graph, sink)


def gib_in_bytes(value: Any) -> int | None:
    """GiB from JSON in bytes; None if it is not an amount of memory."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return round(value * GIB) if is_number and -_MOST_GIB < value < _MOST_GIB else None


def size_in_bytes(value: Any) -> int | None:
    """GiB from JSON in bytes, if it is not negative; None for anything else."""
    size = gib_in_bytes(value)
    return size if size is not None and size >= 0 else None


def _write(table: Table, rows: Sequence[dict[str, Any]], graph: int, sink: Sink) -> None:
    if not rows:
        return
    wide = {name: pl.Int64() if dtype.is_integer() else dtype for name, dtype in table.stored_schema.items()}
    frame = pl.DataFrame(rows, schema_overrides={name: wide[name] for name in rows[0]}, infer_schema_length=None)
    # numbers without a node of ours are not nodes
    sink.write(table, with_schema(frame.with_columns(graph=pl.lit(graph)), table.stored_schema, strict=False))
