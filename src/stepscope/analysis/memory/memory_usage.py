"""Memory in use, by node of a compiled graph or over time as recorded by an allocator; its peak: how much, when or at
which node, and how close to the capacity."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.memory_points import PLACE, during, of_nodes, of_times
from stepscope.analysis.methods.statistics import sum_known
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.selection import Choice, parse_selection
from stepscope.tables import HOST_USAGE, RANK_FIGURES, RANKS
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


@analysis("rank", CURVE)
def memory_usage(
    graph_nodes: pl.LazyFrame | None,
    graphs: pl.LazyFrame | None,
    graph_tensors: pl.LazyFrame | None,
    memory_curve: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
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
    return _known(parts, CURVE)


def _known(parts: Sequence[pl.DataFrame], columns: tuple[Column, ...]) -> pl.DataFrame:
    if not parts:
        raise Unavailable("no memory was recorded")
    rows = pl.concat([with_schema(part, schema_of(columns)) for part in parts])
    if rows.is_empty():
        raise Unavailable("no memory was recorded in the chosen steps")
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


@analysis("rank", COLUMNS)
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
    if not parts and stated and rank_figures is not None:
        parts.append(rank_figures.select("rank").first().collect())
    peaks = _known(parts, COLUMNS)
    is_cpu = RANKS.or_empty(ranks).select((pl.col("device_kind") == "cpu").any()).collect().item()
    on_host = pl.col("device").is_null() & (pl.col("graph").is_null() | pl.lit(is_cpu))
    of_rank = ~on_host | on_host.all()  # the stated figures are of the memory that the rank trains on
    measured = _measured(counters, host_usage, on_host)
    of_all_steps = pl.col("time_ns").is_null() | pl.lit(parse_selection(chosen, "steps") is None)
    stated_peak = pl.when(of_all_steps).then("stated_peak_bytes")
    highest = pl.max_horizontal("peak_bytes", stated_peak, "reserved_peak_bytes")
    return (
        peaks.with_columns(
            pl.when(of_rank).then(pl.lit(stated.get(column), pl.Int64)).alias(column) for column in STATED.values()
        )
        .with_columns(capacity_bytes=pl.coalesce("capacity_bytes", measured))
        .with_columns(used_ratio=pl.when(pl.col("capacity_bytes") > 0).then(highest / pl.col("capacity_bytes")))
        .sort("peak_bytes", *PLACE, descending=[True, *(False for _ in PLACE)], nulls_last=True)
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
    place = [name for name in PLACE if name != "graph"]
    at, changes = pl.col("allocated_bytes").arg_max(), pl.col("change_bytes")
    peaks = (
        curve.sort("time_ns", maintain_order=True)
        .group_by(place, maintain_order=True)
        .agg(
            peak_bytes=pl.col("allocated_bytes").max(),
            allocated_peak_bytes=pl.col("allocated_bytes").max(),
            time_ns=pl.col("time_ns").get(at),
            reserved_peak_bytes=pl.col("reserved_bytes").max(),
            allocations=pl.when(changes.count() > 0).then((changes > 0).sum()),
        )
        .with_columns(allocated_bytes="peak_bytes", change_bytes=pl.lit(None, pl.Int64))
    )
    return of_times(peaks, steps)


def _stated(rank_figures: pl.LazyFrame | None) -> dict[str, int]:
    """The source's own figures about the rank's memory, by column."""
    stated = pl.col("name").is_in(list(STATED)) & pl.col("value").is_not_null()
    rows = RANK_FIGURES.or_empty(rank_figures).filter(stated).sort("name", "value")
    return {STATED[name]: round(value) for name, value in rows.select("name", "value").collect().iter_rows()}


def _measured(counters: pl.LazyFrame | None, usage: pl.LazyFrame | None, on_host: pl.Expr) -> pl.Expr:
    """The capacity of the host or device. Graphs do not state their device: they get the capacity if there is only
    one."""
    devices = _of_devices(counters)
    only = next(iter(devices.values())) if len(devices) == 1 else None
    known = pl.col("device").replace_strict(list(devices), list(devices.values()), default=None, return_dtype=pl.Int64)
    of_device = pl.when(pl.col("device").is_null()).then(pl.lit(only, pl.Int64)).otherwise(known if devices else None)
    of_host = HOST_USAGE.or_empty(usage).select(pl.col("total_bytes").max()).collect().item()
    return pl.when(on_host).then(pl.lit(of_host, pl.Int64)).otherwise(of_device)


def _of_devices(counters: pl.LazyFrame | None) -> dict[int, int]:
    """Memory size of each device."""
    if counters is None:
        return {}
    is_size = (pl.col("name") == CAPACITY_COUNTER) & pl.col("device").is_not_null()
    rows = counters.filter(is_size).group_by("device").agg(pl.col("value").max()).collect()
    return {device: round(value) for device, value in rows.iter_rows()}
