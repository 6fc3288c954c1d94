"""Reading one trace of the PyTorch profiler into tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_text, small_number
from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto import header as head
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import LAYOUT
from stepscope.sources.kineto.tables import TraceSupplement, Written, write_events
from stepscope.sources.timelines import write_timeline
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import RANK_FIGURES, RANKS


def read_trace(item: Input, sink: Sink) -> None:
    """Read one trace.

    Raises:
        UnreadableInput: If the file cannot be opened or holds no list of events.
    """
    events = Events(sink.scratch)
    decoded = TraceEvents(item.path, LAYOUT, sink, places=events.places)
    for batch in decoded:
        for name, frame in batch.items():
            events.add(name, frame)
    header = decoded.header
    events.base_ns = head.base_ns(header, item.path, sink.issue)
    written = write_events(item.path, events, sink, TraceSupplement(head.groups_of(header)))
    sink.write(RANKS, _rank_row(item.path, header, written, events.base_ns))
    capacity = head.device_memory_bytes(header, written.counts.main_device)
    if capacity is not None:
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=["memory_capacity_bytes"], value=[float(capacity)]))
    write_timeline(item.path, decoded.first_ns, events.base_ns, sink)


def _rank_row(path: Path, values: Mapping[str, Any], written: Written, base_ns: int) -> pl.DataFrame:
    counts, span = written.counts, written.span
    rank, origin = head.rank_of(values, path)
    info = head.distributed(values)
    row = {
        "rank": rank,
        "rank_origin": origin,
        "world_size": small_number(info.get("world_size")),
        "host": as_text(values.get("host_name")),
        "process": written.facts.process,
        "device_kind": head.device_kind(values, counts.used_device),
        "device": counts.main_device,
        "device_name": head.device_name(values, counts.main_device),
        "framework": "pytorch",
        "format": "kineto",
        "backend": as_text(info.get("backend")),
        "base_ns": base_ns,
        "start_ns": span[0] if span else None,
        "end_ns": span[1] if span else None,
        "options": head.options_json(values),
    }
    return RANKS.unchecked(**{key: [value] for key, value in row.items()})
