"""Windows that MindSpore's CPU profiler wrote: operators with their shapes, and the allocator's curve."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.recording_format.about import About
from stepscope.sources.base import Sink
from stepscope.sources.communication_names import HOST_OPERATOR
from stepscope.sources.kineto import communication as comm
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import event_frame
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import CpuFiles
from stepscope.sources.mindspore_cpu.memory import read_memory
from stepscope.sources.plausible import FIRST_EPOCH_NS
from stepscope.sources.recording.marks import CALLS
from stepscope.sources.recording.windows import Window
from stepscope.tables import MEMORY_CURVE
from stepscope.tables.base import with_schema


class MindSporeWindows:
    """Adds the operators of windows to the events, one window after the other, and writes the memory curve."""

    def __init__(self, about: About, events: Events, sink: Sink) -> None:
        self._about = about
        self._events = events
        self._sink = sink
        self._curve_until_ns: int | None = None
        self.calls: list[pl.DataFrame] = []
        """Operators that communicate, as `marks.CALLS`."""

    def add(self, window: Window) -> None:
        """Add one window.

        Raises:
            OSError: If a file cannot be read.
        """
        files = CpuFiles.among(file for file in window.files if file.exists())
        if files.times is not None:
            self._add_operators(files.times, files.launches)
        if files.memory is not None:
            self._add_memory(files.memory)

    def _add_operators(self, times: Path, launches: Path | None) -> None:
        rows = read_executions(times, launches, self._sink)
        # before 2.5 MindSpore uses the monotonic clock
        if (first := rows["start_ns"].min()) is not None and int(first) < FIRST_EPOCH_NS:  # type: ignore[arg-type]
            if self._about.epoch_shift_ns is None:
                problem = "operators use a clock with unknown offset to the others; they are left out"
                self._sink.issue("error", times, problem, "Record with MindSpore 2.5 or later", lost=rows.height)
                return
            rows = rows.with_columns(pl.col("start_ns") + self._about.epoch_shift_ns)
        rows = rows.with_columns(pl.col("start_ns") + self._about.shift_ns)
        self.calls.append(_communication(rows))
        placed = rows.with_columns(process=pl.lit(self._about.process))
        self._events.add("operator", event_frame("operator", placed.drop("type", "short")).with_columns(placed["type"]))

    def _add_memory(self, file: Path) -> None:
        """Each window repeats what the earlier ones wrote."""
        rows = read_memory(file, self._sink)
        new = rows if self._curve_until_ns is None else rows.filter(pl.col("time_ns") > self._curve_until_ns)
        if new.height:
            self._curve_until_ns = int(new["time_ns"].max())  # type: ignore[arg-type]
            before_2_5 = self._about.epoch_shift_ns or 0
            epoch = pl.when(pl.col("time_ns") < FIRST_EPOCH_NS).then(before_2_5).otherwise(0)
            self._sink.write(MEMORY_CURVE, new.with_columns(pl.col("time_ns") + epoch + self._about.shift_ns))


def _communication(rows: pl.DataFrame) -> pl.DataFrame:
    found = rows.filter(pl.col("type").str.contains(HOST_OPERATOR))
    calls = found.select("name", "start_ns", "duration_ns", operation=comm.operation_of(pl.col("type")))
    return with_schema(calls, CALLS)
