"""Samples of a rank as metrics: counters of devices and the memory of allocators, each a gauge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.export.otlp.messages import LONGEST_TEXT, Value, attributes
from stepscope.export.run_tables import table_of
from stepscope.run import Run
from stepscope.run.rank import Rank

POINTS = 2_000
"""Points of one metric in a line: some hundred KB."""

_MEMORY = {
    "allocated_bytes": "Memory in use",
    "reserved_bytes": "Memory held by the allocator",
    "active_bytes": "Memory in use or waiting for a stream",
}
_LATEST = (1 << 64) - 1
_LONGEST_NAME = 255
"""Characters of a metric's name, as OpenTelemetry limits it."""


def metrics(run: Run, rank: Rank, shift_ns: Callable[[str], int], lost: list[int]) -> Iterator[bytes]:
    """Metrics with up to `POINTS` samples each, encoded.

    Args:
        run: The run.
        rank: One of its ranks.
        shift_ns: What is added to the times of a table of the rank.
        lost: Gets the numbers of samples that are no numbers, which are left out.
    """
    counters = table_of(run, "counters", [rank])
    if counters is not None:
        for batch in batches(counters):
            finite = batch.filter(pl.col("value").is_finite())
            lost.append(batch.height - finite.height)
            for (name,), rows in finite.partition_by("name", as_dict=True, maintain_order=True).items():
                points = rows.select("time_ns", "value", "device")
                yield from _gauges(f"stepscope.counter.{name}", "", "1", points, shift_ns("counters"))
    memory = table_of(run, "memory_curve", [rank])
    if memory is not None:
        for batch in batches(memory):
            for column, meaning in _MEMORY.items():
                points = batch.select("time_ns", column, "device", "component").drop_nulls(column)
                name = f"stepscope.memory.{column.removesuffix('_bytes')}"
                yield from _gauges(name, meaning, "By", points, shift_ns("memory_curve"))


def _gauges(name: str, meaning: str, unit: str, points: pl.DataFrame, shift_ns: int) -> Iterator[bytes]:
    """Points (time, value, labels) of one gauge."""
    labels = points.columns[2:]
    for part in points.iter_slices(POINTS):
        if not part.height:
            continue
        told = [
            _point(time + shift_ns, value, dict(zip(labels, rest, strict=True))) for time, value, *rest in part.rows()
        ]
        about = {"name": name[:_LONGEST_NAME], "description": meaning, "unit": unit, "gauge": {"dataPoints": told}}
        yield msgspec.json.encode(about)


def _point(time_ns: int, value: float, labels: dict[str, Value | None]) -> dict[str, object]:
    key = "asInt" if isinstance(value, int) else "asDouble"
    short = {name: one[:LONGEST_TEXT] if isinstance(one, str) else one for name, one in labels.items()}
    return {
        "timeUnixNano": str(min(time_ns, _LATEST)),
        key: str(value) if isinstance(value, int) else value,
        "attributes": msgspec.Raw(attributes({f"stepscope.{name}": one for name, one in short.items()})),
    }
