"""What holds the memory at a node or point in time: the tensors or blocks alive there, and how long they live."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.each_rank import each_rank
from stepscope.analysis.methods.memory_points import alive_at, lives
from stepscope.analysis.registry import analysis, ranks_of, without_rows
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


_PLACE = ["rank", "graph", "component", "device"]
_OWNER = ["rank", "component", "device"]


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
    numbers = ranks_of(RANKS.or_empty(ranks))
    parts: list[pl.DataFrame] = []
    if graph_tensors is not None and at_ns is None:
        for _, (tensors, nodes, peak) in each_rank(numbers, graph_tensors, graph_nodes, memory_peak):
            parts += _of_graphs(tensors.lazy(), None if nodes is None else nodes.lazy(), peak, graph, node)
    if allocations is not None and node is None and graph is None:
        parts.append(_of_blocks(allocations, memory_peak, at_ns))
    schema = schema_of(COLUMNS)
    rows = pl.concat([pl.DataFrame(schema=schema), *(with_schema(part, schema) for part in parts)])
    silent = without_rows(numbers, rows)
    asked = {"graph": graph, "node": node, "time": at_ns}
    if silent and (point := ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)):
        raise StepscopeError(f"no allocations are known at {point}{_known(graph_tensors, allocations, silent[0])}")
    if silent or not numbers:
        why = "neither tensors of a graph nor blocks of an allocator were recorded there"
        raise Unavailable("no memory was recorded" if memory_usage is None else why, of=silent)
    total = pl.coalesce(_in_use(rows, memory_usage), pl.col("size_bytes").sum().over(_PLACE))
    return rows.with_columns(share_ratio=pl.when(total > 0).then(pl.col("size_bytes") / total)).sort(
        *_PLACE, -pl.col("size_bytes"), "tensor", "allocation_ns", "release_ns", "name", "made_by", maintain_order=True
    )


def _known(tensors: pl.LazyFrame | None, blocks: pl.LazyFrame | None, rank: int) -> str:
    """At which points they are known on a rank."""
    if blocks is None:
        return "" if tensors is None else ". They are known by graph and node"
    last = pl.max_horizontal("allocation_ns", "release_ns").max()
    own = blocks.filter(pl.col("rank") == rank)
    start, end = own.select(first=pl.col("allocation_ns").min(), last=last).collect().row(0)
    return f". They are known by time, from {start} to {end} ns"


def _in_use(rows: pl.DataFrame, usage: pl.DataFrame | None) -> pl.Series:
    """The memory in use at each row: the lowest of the curves that covers all rows listed there.

    At a time, only the component's own curve counts if it has one.
    """
    at = ["rank", "graph", "node", "component", "device", "time_ns"]
    sums = rows.group_by(at).agg(least=pl.col("size_bytes").sum())
    if usage is None:
        return pl.Series([None] * rows.height, dtype=pl.Int64)
    of_graphs = sums.join(usage.select("rank", "graph", "node", "total_bytes"), on=["rank", "graph", "node"])
    curves = usage.lazy().with_row_index("row").select("row", "rank", "device", curve="component", since_ns="time_ns")
    last = (
        sums.lazy()
        .filter(pl.col("graph").is_null())
        .join(curves, on=["rank", "device"], nulls_equal=True)
        .filter(pl.col("since_ns") <= pl.col("time_ns"))
        .group_by(*at, "least", "curve")
        .agg(pl.col("row").max())
        .collect()
    )
    is_own = pl.col("curve").eq_missing("component")
    last = last.filter(is_own | ~is_own.any().over(at))
    of_times = last.with_columns(total_bytes=usage["total_bytes"].gather(last["row"]))
    known = pl.concat([of_graphs, of_times.select(of_graphs.columns)]).filter(pl.col("total_bytes") >= pl.col("least"))
    lowest = known.group_by(at).agg(pl.col("total_bytes").min())
    return rows.select(at).join(lowest, on=at, how="left", nulls_equal=True, maintain_order="left")["total_bytes"]


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


def _of_blocks(blocks: pl.LazyFrame, peak: pl.DataFrame | None, at_ns: int | None) -> pl.DataFrame:
    """The blocks held at the requested time, or at the peak of each device."""
    places = blocks.select(_OWNER).unique().collect()
    if at_ns is None:
        places = _with_peak_times(places, blocks, peak)
    else:
        places = places.with_columns(time_ns=pl.lit(at_ns, pl.Int64))
    time, released = pl.col("time_ns"), pl.col("release_ns")
    is_held = (pl.col("allocation_ns") <= time) & (released > time).fill_null(True)
    timed = blocks.join(places.lazy(), on=_OWNER, nulls_equal=True, maintain_order="left")
    return timed.filter(is_held).with_columns(life_ns=released - pl.col("allocation_ns")).collect()


def _with_peak_times(places: pl.DataFrame, blocks: pl.LazyFrame, peak: pl.DataFrame | None) -> pl.DataFrame:
    """Components and devices with `time_ns`: when a curve was highest; without a curve, when the blocks held most.

    Most sources do not record the component of blocks, which then belong to the highest curve of their device.
    """
    time = pl.col("time_ns")
    if peak is None:
        timed = places.with_columns(time_ns=pl.lit(None, pl.Int64))
    else:
        curves = peak.drop_nulls("time_ns").select(*_OWNER, "time_ns")
        own = curves.unique(_OWNER, keep="first", maintain_order=True)
        of_device = curves.unique(["rank", "device"], keep="first", maintain_order=True)
        of_device = of_device.select("rank", "device", device_ns="time_ns")
        timed = places.join(own, on=_OWNER, how="left", nulls_equal=True)
        timed = timed.join(of_device, on=["rank", "device"], how="left", nulls_equal=True)
        of_curve = pl.when(pl.col("component").is_null()).then("device_ns")
        timed = timed.select(*_OWNER, time_ns=pl.coalesce(time, of_curve))
    unknown = timed.filter(time.is_null())
    if unknown.is_empty():
        return timed
    owned = blocks.join(unknown.lazy().select(_OWNER), on=_OWNER, how="semi", nulls_equal=True)
    begins = owned.select(*_OWNER, time_ns="allocation_ns", change=pl.col("size_bytes"))
    ended = owned.filter(pl.col("release_ns").is_not_null())
    ends = ended.select(*_OWNER, time_ns="release_ns", change=-pl.col("size_bytes"))
    changes = pl.concat([begins, ends]).group_by(*_OWNER, "time_ns").agg(pl.col("change").sum()).sort("time_ns")
    highest = pl.col("change").cum_sum().arg_max()
    found = changes.collect().group_by(_OWNER, maintain_order=True).agg(pl.col("time_ns").get(highest))
    return pl.concat([timed.filter(time.is_not_null()), found])
