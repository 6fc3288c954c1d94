"""Rows of `memory_curve` and `allocations`, from the profiler's memory events."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.matching import neighbours
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE
from stepscope.tables.memory import SHARED_MEMORY

_CPU = 0  # PyTorch's number of that device type
_LIVE = {"device": pl.Int32, "address": pl.Int64, "change_bytes": pl.Int64}
_BLOCK = {"name": pl.String, "component": pl.String, **_LIVE, "start_ns": pl.Int64}


class MemoryWriter:
    """Writes the curve, and blocks if the events have addresses, segment by segment."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._live = pl.DataFrame(schema=_BLOCK)
        """The last event of each address, if it was an allocation."""
        self._outside = Outside()

    def add(self, segment: Segment, tree: HostTree) -> None:
        """Write a segment's part of the curve, and the blocks whose next event it holds; the last one ends them all."""
        if not segment.rows("memory") and self._live.is_empty():
            return
        on_device = (pl.col("device_type") != _CPU) & (pl.col("device") >= 0)
        events = self._outside.with_component(
            segment.whole("memory")
            .drop_nulls(["start_ns", "change_bytes"])
            .with_columns(device=pl.when(on_device).then("device"))
            .sort("start_ns", maintain_order=True)
        )
        columns = ("component", "device", "change_bytes", "allocated_bytes", "reserved_bytes")
        self._sink.write(MEMORY_CURVE, events.select(*columns, time_ns="start_ns"))
        blocks = _blocks(pl.concat([self._live, _named(events.drop_nulls("address"), segment, tree)]))
        if segment.end_ns is not None:
            self._live = blocks.filter("is_last").select(*_BLOCK)
            blocks = blocks.filter(~pl.col("is_last"))
        if blocks.height:
            of_block = ("name", "component", "device", "address", "release_ns")
            self._sink.write(ALLOCATIONS, blocks.select(*of_block, size_bytes="change_bytes", allocation_ns="start_ns"))


def _blocks(events: pl.DataFrame) -> pl.DataFrame:
    """Each allocation with the release that follows at the same address; `is_last` if nothing follows."""
    _, behind = neighbours(events["device"], events["address"])
    released = events["change_bytes"].gather(behind) < 0
    next_time = events["start_ns"].gather(behind).alias("release_ns")
    none = pl.Series([None], dtype=next_time.dtype)
    blocks = events.hstack([next_time.zip_with(released.fill_null(False), none), behind.is_null().alias("is_last")])
    return blocks.filter(events["change_bytes"] > 0)


def _named(events: pl.DataFrame, segment: Segment, tree: HostTree) -> pl.DataFrame:
    """Events with addresses, and for allocations the operator in which they happened."""
    names = pl.concat([segment.whole(name, ["name"]) for name in ("operator", "call")]).to_series()
    events = events.drop("name").with_row_index("event")
    made = events.filter(pl.col("change_bytes") > 0)
    if len(names) and made.height:
        found = made.select("event", name=names.gather(tree.enclosing_operator(made)))
        events = events.join(found, on="event", how="left", maintain_order="left")
    else:
        events = events.with_columns(name=pl.lit(None, pl.String))
    return events.select(*_BLOCK)


class Outside:
    """Finds the events of blocks that no allocator counts, part by part of a recording, and sums these blocks up.

    Such is the shared memory of loader workers: PyTorch reports its blocks with a total of 0 in use, as if their
    allocator held nothing else.
    """

    def __init__(self) -> None:
        self._live = pl.DataFrame(schema=_LIVE)
        """Blocks outside of the allocators that are not released yet."""
        self._totals: dict[int | None, int] = {}
        """What each device's allocator had in use at last."""

    def with_component(self, events: pl.DataFrame) -> pl.DataFrame:
        """The events with `component`; for those outside, what is in use is the sum of the known blocks.

        Args:
            events: `device`, `address`, `change_bytes`, `allocated_bytes`, `reserved_bytes`, in order of time.
        """
        change, total = pl.col("change_bytes"), pl.col("allocated_bytes")
        rows = events.with_row_index("event").with_columns(
            # after an allocation no less than that can be in use
            made=((change > 0) & (total < change)).fill_null(False),
            emptied=((change < 0) & (total == 0)).fill_null(False),
        )
        held = int(self._live["change_bytes"].sum())
        rows = self._with_released(rows)
        outside = pl.col("made") | pl.col("released")
        if rows["emptied"].any():
            outside |= pl.col("emptied") & self._misfits()
        rows = rows.with_columns(component=pl.when(outside).then(pl.lit(SHARED_MEMORY)))
        self._remember(rows.filter(pl.col("component").is_null()))
        known = pl.when(pl.col("made") | pl.col("released")).then(change).otherwise(0)
        return (
            rows.with_columns(held=known.cum_sum() + held)
            .with_columns(
                allocated_bytes=pl.when(outside).then("held").otherwise("allocated_bytes"),
                reserved_bytes=pl.when(~outside).then("reserved_bytes"),
            )
            .select(*events.columns, "component")
        )

    def _with_released(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `released`: whether an event releases a known block outside."""
        whole = pl.concat([self._live.with_columns(made=pl.lit(True)), rows], how="diagonal")
        before, behind = neighbours(whole["device"], whole["address"])
        known = whole["address"].is_not_null() & whole["made"].gather(before).fill_null(False)
        whole = whole.hstack([(known & (whole["change_bytes"] < 0)).alias("released")])
        is_last = behind.is_null() & whole["made"] & whole["address"].is_not_null()
        self._live = whole.filter(is_last).select(*_LIVE)
        return whole.filter(pl.col("event").is_not_null())

    def _misfits(self) -> pl.Expr:
        """Whether a total of 0 follows neither from the total before nor from the one after."""
        change = pl.col("change_bytes")
        sure = pl.when(~pl.col("made") & ~pl.col("released") & ~pl.col("emptied")).then("allocated_bytes")
        known = [pl.when(pl.col("device").eq_missing(pl.lit(d, pl.Int32))).then(t) for d, t in self._totals.items()]
        before = pl.coalesce(sure.forward_fill().shift(1).over("device"), *known)
        after = (sure - change).backward_fill().over("device")
        return pl.coalesce(before + change, after).fill_null(0) != 0

    def _remember(self, rows: pl.DataFrame) -> None:
        """Keep the last total of each device."""
        known = rows.drop_nulls("allocated_bytes").group_by("device").agg(pl.col("allocated_bytes").last())
        self._totals |= dict(known.iter_rows())
