"""Counters over time: memory of allocators, use of host and device, queues of the input pipeline."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.input.input_queues import DATA_QUEUE
from stepscope.text_columns import filled_in
from stepscope.timeline.clocks import DEVICE_QUEUE
from stepscope.timeline.tracks.base import TABLE, Family, Part

_AMOUNTS = {
    "allocated_bytes": "allocated",
    "reserved_bytes": "reserved",
    "active_bytes": "active",
    "since_start_bytes": "allocated since the start",
}
_SHARES = {"user_ratio": "user code", "system_ratio": "kernel", "io_ratio": "waiting for IO", "idle_ratio": "idle"}
_SIZES = {"rss_bytes": "resident memory", "available_bytes": "free memory"}


def _memory(part: Part) -> pl.LazyFrame | None:
    """Bytes in use and held, by allocator and device."""
    if not part.has("memory_curve"):
        return None
    where = pl.concat_str(
        pl.col("component"),
        pl.when(pl.col("device").is_null()).then(pl.lit("host")).otherwise(filled_in("device {}", "device")),
        separator=" ",
        ignore_nulls=True,
    )
    curve = part.table("memory_curve").with_columns(where=where).sort("rank", "time_ns", maintain_order=True)
    # Old sources have changes alone.
    is_change = pl.all_horizontal(pl.col("allocated_bytes", "reserved_bytes", "active_bytes").is_null())
    changes = pl.when(is_change).then("change_bytes").cum_sum().over("rank", "where")
    return _stacked(curve.with_columns(since_start_bytes=changes), _AMOUNTS, "{}: {} (bytes)")


def _use(part: Part) -> pl.LazyFrame | None:
    """Shares of processors and memory of the host, of processes and of dataset operators."""
    if not part.has("host_usage"):
        return None
    name = pl.coalesce("name", filled_in("process {}", "process"), pl.lit(""))
    where = pl.when(pl.col("scope") == "host").then(pl.lit("host")).otherwise(filled_in("{} {}", "scope", name))
    usage = part.table("host_usage").with_columns(where=where.str.strip_chars())
    usage = usage.sort("rank", "time_ns", maintain_order=True)
    shares = usage.with_columns(pl.col(*_SHARES) * 100)
    return pl.concat([_stacked(shares, _SHARES, "{}: {} (%)"), _stacked(usage, _SIZES, "{}: {} (bytes)")])


def _device_counters(part: Part) -> pl.LazyFrame | None:
    """Samples of counters, by device."""
    if not part.has("counters"):
        return None
    samples = part.table("counters").sort("rank", "time_ns", maintain_order=True)
    return samples.select(
        "rank",
        track=pl.coalesce(filled_in("{} (device {})", "name", "device"), pl.col("name")),
        order=pl.lit(0, pl.Int64),
        start_ns="time_ns",
        value=pl.col("value").cast(pl.Float64),
    )


def _queues(part: Part) -> pl.LazyFrame | None:
    """Items in each queue, and time spent on each batch."""
    if not part.has("input_pipeline"):
        return None
    samples = part.table("input_pipeline").filter(pl.col("time_ns").is_not_null())
    samples = samples.with_columns(where="operator", duration_ms=pl.col("duration_ns") / 1e6)
    samples = samples.sort("rank", "time_ns", maintain_order=True)
    clock = pl.when(pl.col("operator") == DATA_QUEUE).then(pl.lit(DEVICE_QUEUE)).otherwise(pl.lit("input_pipeline"))
    samples = samples.with_columns(clock.alias(TABLE))
    return _stacked(samples, {"queue_size": "queue", "duration_ms": "time of a batch (ms)"}, "{}: {}", TABLE)


def _stacked(rows: pl.LazyFrame, columns: dict[str, str], title: str, *further: str) -> pl.LazyFrame:
    """A track a column and `where`, of its values that are not null; with `further` columns as they are."""
    return pl.concat(
        rows.filter(pl.col(column).is_not_null()).select(
            "rank",
            *further,
            track=filled_in(title, "where", pl.lit(name)),
            order=pl.lit(order, pl.Int64),
            start_ns="time_ns",
            value=pl.col(column).cast(pl.Float64),
        )
        for order, (column, name) in enumerate(columns.items())
    )


MEMORY = Family(
    "memory",
    "Memory",
    "Bytes in use and held by each allocator.",
    "detail",
    _memory,
    shape="samples",
    tables=("memory_curve",),
    priority=5,
)
USE = Family(
    "host_usage",
    "Use of the host",
    "Use of processors and memory by the host, by processes and by dataset operators.",
    "detail",
    _use,
    shape="samples",
    tables=("host_usage",),
    priority=5,
)
DEVICE = Family(
    "counters",
    "Device counters",
    "Samples of counters of devices: clocks, power, rates of memory and links.",
    "detail",
    _device_counters,
    shape="samples",
    tables=("counters",),
    priority=5,
)
QUEUES = Family(
    "input",
    "Input pipeline",
    "Items in the queues of the input pipeline, and the time of each batch.",
    "detail",
    _queues,
    shape="samples",
    tables=("input_pipeline", DEVICE_QUEUE),
    priority=5,
)
