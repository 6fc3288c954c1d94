"""`RuntimeProfilerJson`: the events of a detail that is missing, as trace events `Module::Event::Operator`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.runtime_profiler.detail import EVENTS
from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables.base import with_schema

_LAYOUT = Layout((EventClass("events", frozenset({"X"}), None),))


def read_json_events(path: Path, sink: Sink) -> Iterator[pl.DataFrame]:
    """Events without steps, as `detail.EVENTS`.

    Raises:
        UnreadableInput: If the file holds no list of events.
    """
    parts = pl.col("name").str.splitn("::", 3).struct
    for batch in TraceEvents(path, _LAYOUT, report=sink.issue, workers=sink.workers, advance=sink.advance):
        if (events := batch.frames.get("events")) is None:
            continue
        rows = events.drop_nulls(["start_ns", "duration_ns", "name"])
        named = rows.select(
            "start_ns",
            "duration_ns",
            module=parts.field("field_0"),
            event=parts.field("field_1"),
            operator=parts.field("field_2"),
            thread=pl.col("thread").cast(pl.Int64, strict=False),
            process=pl.col("process").cast(pl.Int64, strict=False),
        )
        yield with_schema(named, EVENTS)
