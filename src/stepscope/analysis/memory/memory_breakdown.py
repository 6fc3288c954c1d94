"""What holds the memory at a node or point in time: the tensors or blocks alive there, and how long they live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.each_rank import each_rank
from stepscope.analysis.methods.memory_points import alive_at, lives
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import StepscopeError, Unavailable
from stepscope.selection import named_numbers
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of, with_schema

COLUMNS = columns(
    "rank graph node",
    meaning("time_ns", "Point in time shown; null for a graph."),
    "component device",
    Column("tensor", "int64", "Number of the tensor in its graph."),
    meaning("name", "Name of the tensor, or of the operator that allocated the block."),
    Column("made_by", "string", "Node that produced the tensor."),
    meaning("size_bytes", "Size."),
    meaning("share_ratio", "Share of the memory in use there, or of the rows' sum if that is unknown or less."),
    meaning("type", "Kind of tensor as stated, e.g. `OUTPUT`."),
    "data_type",
    Column("format", "string", "Data format."),
    Column("shape", "string", "Shape as recorded."),
    Column("lifetime", "string", "How long it lives, as stated, e.g. `LifeLongGraphAll`."),
    Column("life_start", "int32", "First node at which it is alive."),
    Column("life_end", "int32", "Last node at which it is alive."),
    Column("allocation_ns", "int64", "When it was allocated.", moment=True),
    Column("release_ns", "int64", "When it was released; null if that is not in the recording.", moment=True),
    Column("life_ns", "int64", "Time between allocation and release."),
    keep="name size_bytes share_ratio life_ns allocation_ns release_ns made_by shape",
)


@analysis("rank", COLUMNS, together=True)
def memory_breakdown(
    graph_tensors: pl.LazyFrame | None,
    graph_nodes: pl.LazyFrame | None,
    allocations: pl.LazyFrame | None,
    memory_peak: pl.DataFrame | None,
    memory_usage: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    graph: int | None = None,
    node: int | None = None,
    at_ns: int | None = None,
) -> pl.DataFrame:
    """List what is alive at a node of a graph or at a time. Default: at the peak of each graph and device.

    Blocks allocated before the recording began are unknown, so the sum may be less than the curve shows.

    Args:
        graph: Only this graph. Default with `node`: the lowest.
        node: The node.
        at_ns: The time.

    Returns:
        One row per tensor or block, largest first. Tensors have `graph`, `node` and a lifetime in nodes; blocks have
        `time_ns`, `component`, `device` and a lifetime in ns.

    Raises:
        Unavailable: If neither tensors nor blocks were recorded.
        StepscopeError: If there is no such graph or node, or nothing is known at that time; the message lists those
            that exist.
    """
    tables = (graph_tensors, graph_nodes, allocations, memory_peak, memory_usage)
    numbers = ranks_of(RANKS.or_empty(ranks))
    # the blocks of one rank may be millions, of which few are listed
    shares = [(numbers[0], tables)] if len(numbers) == 1 else each_rank(numbers, *tables)
    parts: dict[int, pl.DataFrame | None] = {}
    for rank, (tensors, nodes, blocks, peak, usage) in shares:
        recorded = [None if rows is None else rows.lazy() for rows in (tensors, nodes, blocks)]
        parts[rank] = _of_rank(*recorded, peak=peak, usage=usage, graph=graph, node=node, at_ns=at_ns)
    found = [part for part in parts.values() if part is not None]
    if len(found) < len(parts) or not parts:
        why = "neither tensors of a graph nor blocks of an allocator were recorded there"
        silent = [rank for rank, part in parts.items() if part is None]
        raise Unavailable("no memory was recorded" if memory_usage is None else why, of=silent)
    return pl.concat(found)


def _of_rank(
    graph_tensors: pl.LazyFrame | None,
    graph_nodes: pl.LazyFrame | None,
    allocations: pl.LazyFrame | None,
    *,
    peak: pl.DataFrame | None,
    usage: pl.DataFrame | None,
    graph: int | None,
    node: int | None,
    at_ns: int | None,
) -> pl.DataFrame | None:
    """What is alive on one rank; None if nothing is known."""
    parts: list[pl.DataFrame] = []
    if graph_tensors is not None and at_ns is None:
        parts += _of_graphs(graph_tensors, graph_nodes, peak, graph, node)
    if allocations is not None and node is None and graph is None:
        parts += _of_blocks(allocations, peak, at_ns)
    asked = {"graph": graph, "node": node, "time": at_ns}
    parts = [part for part in parts if part.height]
    if not parts and (point := ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)):
        raise StepscopeError(f"no allocations are known at {point}{_known(graph_tensors, allocations)}")
    if not parts:
        return None
    rows = pl.concat([with_schema(part, schema_of(COLUMNS)) for part in parts])
    place = ["rank", "graph", "component", "device"]
    total = pl.coalesce(_in_use(rows, usage), pl.col("size_bytes").sum().over(place))
    return rows.with_columns(share_ratio=pl.when(total > 0).then(pl.col("size_bytes") / total)).sort(
        *place, -pl.col("size_bytes"), "tensor", "allocation_ns", "release_ns", "name", "made_by", maintain_order=True
    )


def _known(tensors: pl.LazyFrame | None, blocks: pl.LazyFrame | None) -> str:
    """At which points they are known."""
    if blocks is None:
        return "" if tensors is None else ". They are known by graph and node"
    last = pl.max_horizontal("allocation_ns", "release_ns").max()
    start, end = blocks.select(first=pl.col("allocation_ns").min(), last=last).collect().row(0)
    return f". They are known by time, from {start} to {end} ns"


def _in_use(rows: pl.DataFrame, usage: pl.DataFrame | None) -> pl.Series:
    """The memory in use at each row: the lowest of the curves that covers all rows listed there."""
    at = ["graph", "node", "component", "device", "time_ns"]
    sums = rows.group_by(at, maintain_order=True).agg(pl.col("size_bytes").sum())
    totals: dict[tuple[Any, ...], int | None] = {}
    for *key, least in sums.iter_rows():
        known = [] if usage is None else _totals(usage, *key)
        totals[tuple(key)] = min((total for total in known if total >= least), default=None)
    return pl.Series([totals[key] for key in rows.select(at).iter_rows()], dtype=pl.Int64)


def _totals(
    usage: pl.DataFrame,
    graph: int | None,
    node: int | None,
    component: str | None,
    device: int | None,
    at_ns: int | None,
) -> list[int]:
    """The totals of curves at a node or time; only of the component's own curve if it has one."""
    if graph is not None:
        found = usage.filter((pl.col("graph") == graph) & (pl.col("node") == node))
    else:
        is_before = pl.col("device").eq_missing(pl.lit(device, pl.Int32)) & (pl.col("time_ns") <= at_ns)
        before = usage.lazy().filter(is_before).select("component", "total_bytes").collect()
        own = before.filter(pl.col("component").eq_missing(pl.lit(component, pl.String)))
        found = (own if own.height else before).group_by("component", maintain_order=True).last()
    return found["total_bytes"].drop_nulls().to_list()


def _of_graphs(
    tensors: pl.LazyFrame, nodes: pl.LazyFrame | None, peak: pl.DataFrame | None, graph: int | None, node: int | None
) -> Iterator[pl.DataFrame]:
    """The tensors alive at the requested node of each requested graph."""
    there = tensors.select(pl.col("graph").unique().sort()).collect()["graph"].to_list()
    if graph is not None and graph not in there:
        raise StepscopeError(f"no graph {graph} was recorded. Recorded: {named_numbers('graph', there)}")
    if node is not None:
        one = there[0] if graph is None else graph
        _check_node(tensors if nodes is None else nodes, one, node)
        places = {one: node}
    else:
        known = [] if peak is None else peak.drop_nulls(["graph", "node"]).select("graph", "node").rows()
        places = {one: at for one, at in known if graph is None or one == graph}
    living = lives(tensors)
    if nodes is not None:
        makers = nodes.select("rank", "graph", "node", made_by=pl.coalesce("full_name", "name"))
        living = living.join(makers, on=["rank", "graph", "node"], how="left")
    for one, at in places.items():
        alive = living.filter((pl.col("graph") == one) & alive_at(pl.lit(at)))
        yield alive.with_columns(node=pl.lit(at, pl.Int32)).collect()


def _check_node(rows: pl.LazyFrame, graph: int, node: int) -> None:
    """Raise an error if a graph does not have a node."""
    known = rows.filter((pl.col("graph") == graph) & pl.col("node").is_not_null()).select("node").collect()["node"]
    if node not in known:
        there = f"It has {named_numbers('node', known.unique().to_list())}" if len(known) else "Its nodes are unknown"
        raise StepscopeError(f"graph {graph} has no node {node}. {there}")


def _of_blocks(blocks: pl.LazyFrame, peak: pl.DataFrame | None, at_ns: int | None) -> Iterator[pl.DataFrame]:
    """The blocks held at the requested time, or at the peak of each device."""
    places = blocks.select("component", "device").unique().sort("component", "device").collect()
    for component, device in places.iter_rows():
        of_device = blocks.filter(_at(component, device))
        at = at_ns if at_ns is not None else _peak_time(of_device, peak, component, device)
        held = (pl.col("allocation_ns") <= at) & (pl.col("release_ns") > at).fill_null(True)
        life = pl.col("release_ns") - pl.col("allocation_ns")
        yield of_device.filter(held).with_columns(time_ns=pl.lit(at, pl.Int64), life_ns=life).collect()


def _at(component: str | None, device: int | None) -> pl.Expr:
    """Whether a row belongs to a component and device."""
    same = pl.col("component").eq_missing(pl.lit(component, pl.String))
    return same & pl.col("device").eq_missing(pl.lit(device, pl.Int32))


def _peak_time(blocks: pl.LazyFrame, peak: pl.DataFrame | None, component: str | None, device: int | None) -> int:
    """When a curve was highest; without a curve, when the blocks held most.

    Most sources do not record the component of blocks, which then belong to the highest curve of their device.
    """
    if peak is not None:
        timed = peak.drop_nulls("time_ns")
        own = timed.filter(_at(component, device))
        of_device = timed.filter(pl.col("device").eq_missing(pl.lit(device, pl.Int32)) & pl.lit(component is None))
        for curves in (own, of_device):
            if curves.height:
                return int(curves["time_ns"][0])
    begins = blocks.select(time_ns="allocation_ns", change=pl.col("size_bytes"))
    ends = blocks.filter(pl.col("release_ns").is_not_null()).select(time_ns="release_ns", change=-pl.col("size_bytes"))
    running = pl.concat([begins, ends]).group_by("time_ns").agg(pl.col("change").sum()).sort("time_ns").collect()
    return int(running["time_ns"][running["change"].cum_sum().arg_max() or 0])
