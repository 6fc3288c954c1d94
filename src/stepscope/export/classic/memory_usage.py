"""`memory_usage_summary`, `memory_usage_details` and `cpu_ms_memory_record`: what the framework's allocator held.

The pages that read these files know graphs whose nodes allocate; here a node is a moment at which memory was allocated
or released, at most `MAX_NODES` of them, the highest of each interval, so that the peak is among them.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.formatting import csv_text
from stepscope.export.rank_export import RankExport

RECORD_HEADER = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)"
MAX_NODES = 1000
MAX_BLOCKS = 20
"""Largest blocks listed at each node."""
_GIB = 1 << 30
_GRAPH = 1


def write_memory_usage(export: RankExport) -> None:
    """Write all three; nothing if memory was not recorded."""
    summary, details = f"memory_usage_summary_{export.rank}.json", f"memory_usage_details_{export.rank}.json"
    record = f"cpu_ms_memory_record_{export.rank}.txt"
    every = (
        export.within(export.allocator_rows("memory_curve"), "time_ns")
        .drop_nulls("allocated_bytes")
        .sort("time_ns", maintain_order=True)
    )
    if every.is_empty():
        ours = "profile_memory is off, or the framework does not report it"
        reason = export.because("the allocator was not recorded", ours)
        for name in (summary, details, record):
            export.leave_out(name, reason)
        return
    active = pl.coalesce("active_bytes", "allocated_bytes").alias("active_bytes")
    host = every.filter(pl.col("device").is_null())
    host = host.select("time_ns", "allocated_bytes", pl.col("reserved_bytes").fill_null(0), active)
    if host.height:
        export.write(record, csv_text(RECORD_HEADER, host.iter_rows()))
    else:
        export.leave_out(record, "no memory of the host was recorded")
    device = every["device"].drop_nulls().min()
    curve = every.filter(pl.col("device").eq_missing(pl.lit(device, pl.Int32))).with_columns(
        change_bytes=pl.coalesce("change_bytes", pl.col("allocated_bytes").diff())
    )
    first_change = curve["change_bytes"][0] or 0
    static = max(int(curve["allocated_bytes"][0]) - max(first_change, 0), 0)
    changes = curve["change_bytes"].fill_null(0)
    export.write_json(
        summary,
        {
            "capacity": _gib(_capacity(export, device is not None)),
            "allocations": int((changes > 0).sum()),
            "deallocations": int((changes < 0).sum()),
            "peak_mem": _gib(int(curve["allocated_bytes"].max() or 0)),  # type: ignore[arg-type]
            "static_mem": _gib(static),
        },
    )
    export.write_json(details, {str(_GRAPH): _graph(export, _thinned(curve), device, static)})


def _gib(count: int) -> float:
    return round(count / _GIB, 9)


def _capacity(export: RankExport, on_device: bool) -> int:
    """Memory of the device, or of the machine; 0 if it was not sampled."""
    if on_device:
        found = export.rows("counters").filter(pl.col("name") == "memory_total_bytes")["value"]
    else:
        found = export.rows("host_usage")["total_bytes"]
    return int(found.drop_nulls().max() or 0)  # type: ignore[arg-type]


def _thinned(curve: pl.DataFrame) -> pl.DataFrame:
    """The highest point of each of `MAX_NODES` intervals with equally many points."""
    if curve.height <= MAX_NODES:
        return curve
    interval = pl.int_range(curve.height, eager=True) * MAX_NODES // curve.height
    highest = pl.all().sort_by("allocated_bytes", descending=True, maintain_order=True).first()
    return curve.group_by(interval.alias("interval"), maintain_order=True).agg(highest).drop("interval")


def _graph(export: RankExport, nodes: pl.DataFrame, device: Any, static: int) -> dict[str, Any]:
    blocks = export.allocator_rows("allocations").filter(pl.col("device").eq_missing(pl.lit(device, pl.Int32)))
    times, last = nodes["time_ns"], nodes.height - 1
    lives = {"life_start": blocks["allocation_ns"], "life_end": blocks["release_ns"].fill_null(times[last] + 1)}
    blocks = (
        blocks.with_columns(times.search_sorted(at).clip(upper_bound=last).alias(name) for name, at in lives.items())
        .sort("size_bytes", descending=True, maintain_order=True)
        .with_row_index("number")
    )
    names = dict(blocks.select("allocation_ns", "name").iter_rows())
    points = export.numbered_steps.select("forward_start_ns", "backward_end_ns")
    forward, backward = next(points.iter_rows(), (None, None))
    columns = nodes.select("time_ns", "change_bytes", "allocated_bytes").iter_rows()
    return {
        "graph_id": _GRAPH,
        "static_mem": _gib(static),
        "nodes": [
            {
                "name": names.get(at) or f"event-{number}",
                "fullname": names.get(at) or f"event-{number}",
                "node_id": number,
                "allocations": int((change or 0) > 0),
                "size": _gib(max(change or 0, 0)),
                "allocated": _gib(allocated),
                "inputs": [],
                "outputs": [],
            }
            for number, (at, change, allocated) in enumerate(columns)
        ],
        "fp_start": 0 if forward is None else min((times <= forward).sum(), last),
        "bp_end": last if backward is None else min((times <= backward).sum(), last),
        "lines": [_gib(allocated) for allocated in nodes["allocated_bytes"]],
        "breakdowns": [_live(blocks, at) for at in times],  # last, since one reader looks for it there
    }


def _live(blocks: pl.DataFrame, at: int) -> list[dict[str, Any]]:
    """The largest blocks that are held at a moment, with the nodes of their lives."""
    held = (pl.col("allocation_ns") <= at) & (pl.col("release_ns").fill_null(at + 1) > at)
    columns = ("number", "name", "size_bytes", "life_start", "life_end")
    return [
        {
            "tensor_name": name or f"block-{number}",
            "tensor_id": number,
            "size": _gib(size),
            "type": "block",
            "shape": "",
            "format": "",
            "data_type": "",
            "life_long": "LifeLongNone",
            "life_start": start,
            "life_end": end,
        }
        for number, name, size, start, end in blocks.filter(held).head(MAX_BLOCKS).select(columns).iter_rows()
    ]
