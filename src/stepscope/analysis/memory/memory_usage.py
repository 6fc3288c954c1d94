"""Memory in use, by node of a compiled graph or over time as recorded by an allocator; its peak: how much, when or at
which node, and how close to the capacity."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.memory_points import PLACE, during, of_nodes, of_times
from stepscope.analysis.methods.statistics import grouped_in_memory, sum_known
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.selection import Choice, parse_selection
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of, with_schema

CURVE = columns(
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


NO_MEMORY = "no memory was recorded"
NONE_CHOSEN = "no memory was recorded in the chosen steps"


@analysis("rank", CURVE, together=True, nothing=NONE_CHOSEN)
def memory_usage(
    graph_nodes: pl.LazyFrame | None,
    graphs: pl.LazyFrame | None,
    graph_tensors: pl.LazyFrame | None,
    memory_curve: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None = None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """List the curve of memory in use: one row per node of a graph, or per change over time.

    While a node of a compiled graph ran, the memory in use is what the source states (`total_bytes`, including the
    static part), or else the static part plus all tensors alive.

    Args:
        chosen: Only changes in these steps, e.g. `1-3`, and the memory in use as they begin. A graph is of all steps.

    Raises:
        Unavailable: If no memory was recorded, or none in the chosen steps.
    """
    parts = []
    if graph_nodes is not None:
        parts.append(of_nodes(graph_nodes, graphs, graph_tensors))
    if memory_curve is not None:
        parts.append(of_times(during(memory_curve, steps, chosen), steps))
    if not parts:
        raise Unavailable(NO_MEMORY, of=ranks_of(RANKS.or_empty(ranks)))
    return _known(parts, CURVE)


def _known(parts: Sequence[pl.DataFrame], columns: tuple[Column, ...]) -> pl.DataFrame:
    rows = pl.concat([with_schema(part, schema_of(columns)) for part in parts])
    if rows.is_empty():
        raise Unavailable(NONE_CHOSEN)
    return rows


STATED = {
    "memory_capacity_bytes": "capacity_bytes",
    "memory_peak_bytes": "stated_peak_bytes",
    "memory_static_bytes": "stated_static_bytes",
    "memory_allocations": "stated_allocations",
    "memory_deallocations": "stated_deallocations",
}
"""Names of `rank_figures` and the columns that they become."""

CAPACITY_COUNTER = "memory_total_bytes"
"""The counter in which the recorder stores the memory size of a device."""

COLUMNS = columns(
    "rank graph component device peak_bytes",
    meaning("node", "Node of the peak; null for memory over time."),
    meaning("time_ns", "When the peak was first reached; null for a graph."),
    meaning("step", "Step of the peak."),
    meaning("phase", "Phase of the step at the peak, as in `memory_usage`."),
    meaning("name", "Name of that node."),
    meaning("full_name", "Full name of that node."),
    "static_bytes",
    Column("allocated_peak_bytes", "int64", "Peak without the static part.", importance=14),
    Column("reserved_peak_bytes", "int64", "Most memory reserved by the allocator."),
    "allocations capacity_bytes",
    Column("stated_peak_bytes", "int64", "Peak as the source states it for the rank."),
    Column("stated_static_bytes", "int64", "Static part as stated.", importance=12),
    Column("stated_allocations", "int64", "Allocations as stated.", importance=10),
    Column("stated_deallocations", "int64", "Releases as stated.", importance=11),
    Column("used_ratio", "float64", "Highest of peak, stated peak and reserved memory, divided by the capacity."),
    keep="peak_bytes used_ratio component device step phase time_ns name reserved_peak_bytes",
)


@analysis("rank", COLUMNS, together=True, nothing=NONE_CHOSEN)
def memory_peak(
    graph_nodes: pl.LazyFrame | None,
    graphs: pl.LazyFrame | None,
    graph_tensors: pl.LazyFrame | None,
    memory_curve: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    rank_figures: pl.LazyFrame | None,
    counters: pl.LazyFrame | None,
    host_usage: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Find the peak of each curve of `memory_usage`: one row per graph, or device and component, highest first.

    Args:
        chosen: Only memory in use in these steps, e.g. `1-3`. Graphs and stated figures are of all steps; the stated
            peak then does not count for `used_ratio`.

    Raises:
        Unavailable: If no memory was recorded, or none in the chosen steps.
    """
    stated, parts = _stated(rank_figures), []
    if graph_nodes is not None:
        parts.append(_of_graphs(of_nodes(graph_nodes, graphs, graph_tensors)))
    if memory_curve is not None:
        parts.append(_of_curves(during(memory_curve, steps, chosen), steps))
    if not parts:
        use = [pl.col(column).is_not_null() for column in STATED.values() if column != "capacity_bytes"]
        used = stated.filter(pl.any_horizontal(use))
        parts.append(used.select("rank"))
        if unknown := without_rows(ranks_of(RANKS.or_empty(ranks)), used):
            raise Unavailable(NO_MEMORY, of=unknown)
    peaks = _known(parts, COLUMNS).drop(STATED.values(), strict=False)
    kinds = RANKS.or_empty(ranks).filter(pl.col("device_kind").is_not_null())
    is_cpu = pl.col("device_kind") == "cpu"
    cpus, others = (ranks_of(kinds.filter(is_one)) for is_one in (is_cpu, ~is_cpu))
    on_host = pl.col("device").is_null() & (pl.col("graph").is_null() | pl.col("rank").is_in(cpus))
    # the stated figures are of the memory that the rank trains on
    of_rank = ~on_host | on_host.all().over("rank") & ~pl.col("rank").is_in(others)
    of_all_steps = pl.col("time_ns").is_null() | pl.lit(parse_selection(chosen, "steps") is None)
    stated_peak = pl.when(of_all_steps).then("stated_peak_bytes")
    highest = pl.max_horizontal("peak_bytes", stated_peak, "reserved_peak_bytes")
    return (
        peaks.join(stated, on="rank", how="left", maintain_order="left")
        .with_columns(pl.when(of_rank).then(column).alias(column) for column in STATED.values())
        .with_columns(capacity_bytes=pl.coalesce("capacity_bytes", _measured(peaks, counters, host_usage, on_host)))
        .with_columns(used_ratio=pl.when(pl.col("capacity_bytes") > 0).then(highest / pl.col("capacity_bytes")))
        .select(names(COLUMNS))
        .sort("rank", "peak_bytes", *PLACE[1:], descending=[False, True, *(False for _ in PLACE[1:])], nulls_last=True)
    )


def _of_graphs(nodes: pl.DataFrame) -> pl.DataFrame:
    """The first node of each graph that reaches the peak."""
    at = pl.col("total_bytes").arg_max()
    return nodes.group_by("rank", "graph", maintain_order=True).agg(
        pl.col("total_bytes").max().alias("peak_bytes"),
        *(pl.col(name).get(at) for name in ("node", "name", "full_name")),
        pl.col("static_bytes").max(),
        pl.col("allocated_bytes").max().alias("allocated_peak_bytes"),
        sum_known("allocations"),
    )


def _of_curves(curve: pl.LazyFrame, steps: pl.LazyFrame | None) -> pl.DataFrame:
    """The first time each allocator reaches its peak, with the step (looked up for this time only)."""
    is_allocation = (pl.col("change_bytes") > 0).cast(pl.Int64)
    rows = curve.select(*_ALLOCATOR, "time_ns", "allocated_bytes", "reserved_bytes", allocations=is_allocation)
    peaks = _highest(pl.concat(map(_highest, batches(rows)))).select(
        *_ALLOCATOR,
        "allocated_bytes",
        "time_ns",
        "allocations",
        peak_bytes="allocated_bytes",
        allocated_peak_bytes="allocated_bytes",
        reserved_peak_bytes="reserved_bytes",
        change_bytes=pl.lit(None, pl.Int64),
    )
    return of_times(peaks.lazy(), steps)


_ALLOCATOR = [name for name in PLACE if name != "graph"]


def _highest(rows: pl.DataFrame) -> pl.DataFrame:
    """The peak of each allocator, when it is first reached, and the number of `allocations`, if any is known."""
    allocated = pl.col("allocated_bytes")
    first = pl.col("time_ns").filter(allocated == allocated.max()).min()
    most = allocated.max(), pl.col("reserved_bytes").max()
    return grouped_in_memory(rows, _ALLOCATOR, [*most, sum_known("allocations"), first.alias("time_ns")])


def _stated(rank_figures: pl.LazyFrame | None) -> pl.DataFrame:
    """The source's own figures about each rank's memory, where it has any: `rank` and the columns of `STATED`."""
    found: dict[int, dict[str, int]] = {}
    if rank_figures is not None:
        is_stated = pl.col("name").is_in(list(STATED)) & pl.col("value").is_not_null()
        rows = rank_figures.filter(is_stated).sort("rank", "name", "value").select("rank", "name", "value").collect()
        for rank, name, value in rows.iter_rows():
            found.setdefault(rank, {})[STATED[name]] = round(value)
    schema = {"rank": pl.Int32, **dict.fromkeys(STATED.values(), pl.Int64)}
    return pl.DataFrame([{"rank": rank, **figures} for rank, figures in found.items()], schema=schema)


def _measured(
    peaks: pl.DataFrame, counters: pl.LazyFrame | None, usage: pl.LazyFrame | None, on_host: pl.Expr
) -> pl.Series:
    """The capacity of the host or device of each peak. Graphs do not state their device: they get the capacity if there
    is only one."""
    devices = _of_devices(counters)
    only = devices.group_by("rank").agg(only=pl.col("capacity").first(), count=pl.len()).filter(pl.col("count") == 1)
    schema = {"rank": pl.Int32, "of_host": pl.Int64}
    host = pl.DataFrame(schema=schema)
    if usage is not None:
        host = usage.group_by("rank").agg(of_host=pl.col("total_bytes").max()).collect()
    known = (
        peaks.select("rank", "graph", "device")
        .join(devices, on=["rank", "device"], how="left", maintain_order="left")
        .join(only, on="rank", how="left", maintain_order="left")
        .join(host, on="rank", how="left", maintain_order="left")
    )
    of_device = pl.when(pl.col("device").is_null()).then("only").otherwise("capacity")
    return known.select(pl.when(on_host).then("of_host").otherwise(of_device)).to_series()


def _of_devices(counters: pl.LazyFrame | None) -> pl.DataFrame:
    """Memory size of each device: `rank`, `device`, `capacity`."""
    rows: list[tuple[int, int, float]] = []
    if counters is not None:
        is_size = (pl.col("name") == CAPACITY_COUNTER) & pl.col("device").is_not_null()
        rows = counters.filter(is_size).group_by("rank", "device").agg(pl.col("value").max()).collect().rows()
    sizes = [(rank, device, round(value)) for rank, device, value in rows]
    return pl.DataFrame(sizes, schema={"rank": pl.Int32, "device": pl.Int32, "capacity": pl.Int64}, orient="row")
