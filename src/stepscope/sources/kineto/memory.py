"""Rows of `memory_curve` and `allocations`, from the profiler's memory events."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.spool import Spool
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE

_CPU = 0  # PyTorch's number of that device type


def write_memory(spool: Spool, tree: HostTree, sink: Sink) -> None:
    """Write the curve, and blocks where the events have addresses."""
    events = spool.whole("memory")
    if events is None:
        return
    on_device = (pl.col("device_type") != _CPU) & (pl.col("device") >= 0)
    events = (
        events.drop_nulls(["start_ns", "change_bytes"])
        .with_columns(device=pl.when(on_device).then("device"))
        .sort("start_ns", maintain_order=True)
    )
    sink.write(
        MEMORY_CURVE,
        events.select("device", "change_bytes", "allocated_bytes", "reserved_bytes", time_ns=pl.col("start_ns")),
    )
    blocks = _blocks(events.drop_nulls("address"))
    if blocks.height:
        sink.write(ALLOCATIONS, _named(blocks, spool, tree))


def _blocks(events: pl.DataFrame) -> pl.DataFrame:
    """Each allocation with the release that follows at the same address."""
    key = ["device", "address"]
    next_change = pl.col("change_bytes").shift(-1).over(key)
    next_time = pl.col("start_ns").shift(-1).over(key)
    return events.with_columns(release_ns=pl.when(next_change < 0).then(next_time)).filter(pl.col("change_bytes") > 0)


def _named(blocks: pl.DataFrame, spool: Spool, tree: HostTree) -> pl.DataFrame:
    names = [f["name"] for n in ("operator", "call") for f in spool.frames(n, ["start_ns", "name"])]
    rows = tree.enclosing_operator(blocks)
    if names:
        name = pl.concat(names).gather(rows).alias("name")
    else:
        name = pl.repeat(None, blocks.height, dtype=pl.String, eager=True).alias("name")
    return blocks.select(
        name,
        "device",
        "address",
        "release_ns",
        size_bytes="change_bytes",
        allocation_ns="start_ns",
    )
