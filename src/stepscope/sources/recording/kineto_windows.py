"""Windows that torch.profiler wrote: many traces of one rank as one stream of events."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.header import BASE, base_ns
from stepscope.sources.kineto.layout import LABELS, LAYOUT
from stepscope.sources.kineto.steps import STEP_PREFIX
from stepscope.sources.plausible import FIRST_EPOCH_NS
from stepscope.sources.recording.windows import Window
from stepscope.sources.spool import Spool
from stepscope.sources.timelines import write_timeline
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.text_columns import filled_in

_IDS = ("external_id", "correlation")
_MAY_BE_STEPS = ("annotation", "operator", "device_annotation")


class KinetoWindows:
    """Adds traces to the events, window by window.

    Each trace has its own time base and counts its ids from the start, so times are made absolute and ids unique.
    Steps are those of the marks; the profiler's own steps are left out. `shift_ns` is added to all times, in addition
    to the base of each trace.
    """

    def __init__(self, events: Events, shift_ns: int, sink: Sink) -> None:
        self._events = events
        self._shift_ns = shift_ns
        self._sink = sink
        self._last_id = 0
        self._base_ns: int | None = None

    def add(self, window: Window) -> None:
        """Add one window.

        Raises:
            UnreadableInput: If a trace holds no list of events.
            OSError: If it cannot be read.
        """
        for file in window.files:
            if file.name.endswith((".json", ".json.gz")):
                self._add_trace(file, window)

    def _add_trace(self, file: Path, window: Window) -> None:
        sink = self._sink
        waiting: Spool[str] = Spool(sink.scratch)  # the base comes after the events, so they wait for it
        decoded = TraceEvents(file, LAYOUT, sink, places=self._events.places)
        ids, starts = [0], []
        for batch in decoded:
            for name, frame in batch.items():
                if name == LABELS:
                    self._events.add(name, frame)
                    continue
                waiting.add(name, frame)
                starts.append(frame.select(pl.min("start_ns")).item())
                ids += [frame.select(pl.max(column)).item() or 0 for column in _IDS if column in frame.columns]
        first_ns = min((start for start in starts if start is not None), default=None)
        base = base_ns(decoded.header, file, sink.issue, "it is guessed from the windows")
        if not base and first_ns is not None and first_ns < FIRST_EPOCH_NS:
            base = self._guessed_base(file, window, first_ns, is_truncated=decoded.header.get(BASE) is None)
        self._base_ns = base
        for name in waiting.keys():  # noqa: SIM118 - a spool is not a dict
            for frame in waiting.taken(name):
                self._events.add(name, self._adapted(name, frame, base + self._shift_ns, window.number))
        self._last_id += max(ids)
        write_timeline(file, decoded.first_ns, base + self._shift_ns, sink)

    def _guessed_base(self, file: Path, window: Window, first_ns: int, *, is_truncated: bool) -> int:
        """The base of a trace without a usable one: that of the previous trace, the same in a process."""
        if self._base_ns is not None:
            return self._base_ns
        if is_truncated:
            problem = "the trace is truncated before its time base; its first event is taken as the start of the window"
            self._sink.issue("warning", file, problem, "Copy the recording again")
        return window.start_ns - first_ns

    def _adapted(self, name: str, frame: pl.DataFrame, shift_ns: int, number: int) -> pl.DataFrame:
        if name in _MAY_BE_STEPS:
            frame = frame.filter(~pl.col("name").str.starts_with(STEP_PREFIX))
        ids = [
            pl.when(pl.col(column) > 0).then(pl.col(column) + self._last_id).otherwise(column).alias(column)
            for column in _IDS
            if column in frame.columns
        ]
        if name == "flow":
            ids.append(filled_in("{}.{}", pl.lit(number), "id").alias("id"))
        return frame.with_columns(pl.col("start_ns") + shift_ns, *ids)
