"""Rows of `memory_curve` and `allocations`, from the profiler's memory events."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.outside_memory import Outside
from stepscope.sources.kineto.segments import Segment
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE

_CPU = 0  # PyTorch's number of that device type
_BLOCK = {
    "name": pl.String,
    "component": pl.String,
    "device": pl.Int32,
    "address": pl.Int64,
    "change_bytes": pl.Int64,
    "start_ns": pl.Int64,
}


class MemoryWriter:
    """Writes the curve, and blocks if the events have addresses, segment by segment."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._live = pl.DataFrame(schema=_BLOCK)
        """The last event of each address, if it was an allocation."""
        self._outside = Outside()

    def add(self, segment: Segment, tree: HostTree) -> None:
        """Write a segment's part of the curve, and the blocks whose next event it holds; the last one ends them all."""
        events = segment.whole("memory")
        addressed = None
        if events is not None:
            on_device = (pl.col("device_type") != _CPU) & (pl.col("device") >= 0)
            events = (
                events.drop_nulls(["start_ns", "change_bytes"])
                .with_columns(device=pl.when(on_device).then("device"))
                .sort("start_ns", maintain_order=True)
            )
            events = self._outside.told_apart(events)
            columns = ("component", "device", "change_bytes", "allocated_bytes", "reserved_bytes")
            self._sink.write(MEMORY_CURVE, events.select(*columns, time_ns=pl.col("start_ns")))
            addressed = _named(events.drop_nulls("address"), segment, tree)
        blocks = _blocks(self._live if addressed is None else pl.concat([self._live, addressed]))
        if segment.end_ns is not None:
            self._live = blocks.filter("is_last").select(*_BLOCK)
            blocks = blocks.filter(~pl.col("is_last"))
        if blocks.height:
            of_block = ("name", "component", "device", "address", "release_ns")
            self._sink.write(ALLOCATIONS, blocks.select(*of_block, size_bytes="change_bytes", allocation_ns="start_ns"))


def _blocks(events: pl.DataFrame) -> pl.DataFrame:
    """Each allocation with the release that follows at the same address; `is_last` if nothing follows."""
    key = ["device", "address"]
    next_change = pl.col("change_bytes").shift(-1).over(key)
    next_time = pl.col("start_ns").shift(-1).over(key)
    return events.with_columns(
        release_ns=pl.when(next_change < 0).then(next_time), is_last=next_change.is_null()
    ).filter(pl.col("change_bytes") > 0)


def _named(events: pl.DataFrame, segment: Segment, tree: HostTree) -> pl.DataFrame:
    """Events with addresses, and for allocations the operator in which they happened."""
    names = [frame["name"] for name in ("operator", "call") for frame in segment.frames(name, ["name"])]
    events = events.drop("name").with_row_index("event")
    made = events.filter(pl.col("change_bytes") > 0)
    if names and made.height:
        found = made.select("event", name=pl.concat(names).gather(tree.enclosing_operator(made)))
        events = events.join(found, on="event", how="left", maintain_order="left")
    else:
        events = events.with_columns(name=pl.lit(None, pl.String))
    return events.select(*_BLOCK)
