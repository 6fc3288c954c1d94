"""Events: lines of `RuntimeProfilerDetail`, below a line for their step, or if that is missing, a trace.

`RuntimeProfilerJson` has the same events as trace events `Module::Event::Operator`, without steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.timelines import write_timeline
from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables.base import with_schema

EVENTS = {
    "step": pl.Int32,
    "module": pl.String,
    "event": pl.String,
    "operator": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "thread": pl.Int64,
    "process": pl.Int64,
}
STATED = {"step": pl.Int32, "length_ns": pl.Int64}
"""Lengths of steps."""

_STEP_LINE = r"^\[Step:(\d{1,9}),? "
_EVENT = (
    r"^(?:module|stage):(?P<module>.*?), event:(?P<event>.*?), op:(?P<operator>.*), "
    r"start_time:(?P<start>\d{1,19}), end_time:(?P<end>\d{1,19}), dur_time:.*?, tid:(?P<thread>\d{1,18}), "
    r"pid:(?P<process>\d{1,18})\s*$"
)
_LAYOUT = Layout((EventClass("events", frozenset({"X"}), None),))
_BLOCK_BYTES = 16 << 20
_MOST_BLOCKS = 4


def read_detail(path: Path, sink: Sink) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Events and lengths of steps, in parts of whole steps unless these are very large.

    Returns:
        Frames with the columns of `EVENTS` (in the order of the file) and of `STATED`.

    Raises:
        OSError: If the file cannot be read.
    """
    step: int | None = None
    lost, first, line = 0, 0, 0
    parts = pl.col("line").str.extract_groups(_EVENT).struct.unnest()
    length = pl.col("line").str.extract(r"step_time:(\d{1,18})ns", 1).cast(pl.Int64, strict=False)
    for block in _blocks(path):
        lines = pl.Series("line", block.decode("utf-8", "replace").split("\n"), dtype=pl.String).to_frame()
        begun = lines.with_columns(begun=pl.col("line").str.extract(_STEP_LINE, 1).cast(pl.Int32))
        of = pl.col("begun").forward_fill().fill_null(pl.lit(step, pl.Int32))
        start, end, thread, process = (
            pl.col(name).cast(pl.Int64, strict=False) for name in ("start", "end", "thread", "process")
        )
        rows = begun.with_columns(parts, step=of).with_columns(
            thread=thread, process=process, start_ns=start, duration_ns=end - start
        )
        is_event = (rows["duration_ns"] >= 0).fill_null(False)
        damaged = ~is_event & (rows["line"].str.strip_chars() != "") & rows["begun"].is_null()
        if count := int(damaged.sum()):
            first = first or line + 1 + int(damaged.arg_true()[0])
            lost += count
        line += block.count(b"\n")
        step = rows["step"][-1]
        yield rows.filter(is_event).select(*EVENTS), begun.drop_nulls("begun").select(step="begun", length_ns=length)
    if lost:
        problem = f"{lost} lines are not readable events and are left out"
        remedy = "The rest is complete. Copy the file again if you need them"
        sink.issue("warning", path, problem, remedy, place=f"first: line {first}", lost=lost)


def _blocks(path: Path) -> Iterator[bytes]:
    """Text of whole lines, which ends before the line of a step if one is near."""
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(_BLOCK_BYTES):
            rest += piece
            cut = rest.rfind(b"\n[Step:") + 1
            if not cut and len(rest) >= _MOST_BLOCKS * _BLOCK_BYTES:
                cut = rest.rfind(b"\n") + 1
            if cut and len(piece) == _BLOCK_BYTES:
                yield rest[:cut]
                rest = rest[cut:]
    if rest:
        yield rest


def read_json_events(path: Path, sink: Sink) -> Iterator[pl.DataFrame]:
    """Events of a trace, as `EVENTS`, without steps.

    Raises:
        UnreadableInput: If the file holds no list of events.
    """
    parts = pl.col("name").str.splitn("::", 3).struct
    trace = TraceEvents(path, _LAYOUT, sink)
    for batch in trace:
        if (events := batch.get("events")) is None:
            continue
        rows = events.drop_nulls(["start_ns", "duration_ns", "name"])
        named = [parts.field(f"field_{at}").alias(name) for at, name in enumerate(("module", "event", "operator"))]
        yield with_schema(rows.with_columns(*named), EVENTS, strict=False)
    write_timeline(path, trace.first_ns, 0, sink)
