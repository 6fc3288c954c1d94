"""Sinks that stand between a reader and the sink of its input."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.tables import COMMUNICATION_TASKS, FLOWS, ISSUES, RANKS, TIMELINES, Table
from stepscope.tables.issues import Severity
from stepscope.text_columns import filled_in


class _ForwardingSink:
    """Passes issues and progress on to another sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.workers = sink.workers
        self.issue = sink.issue
        self.scratch = sink.scratch
        self.advance = sink.advance


class RecordedStepsSink(_ForwardingSink):
    """Passes all on to another sink, steps by the numbers that they had when they were recorded.

    Files that stepscope exported count them from 1; `steps` are the recorded numbers, from the list with the files.
    """

    def __init__(self, sink: Sink, steps: Sequence[int]) -> None:
        super().__init__(sink)
        self._numbers = {0: 0, **dict(enumerate(steps, 1))}

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`. Rows after the last step belong to no step."""
        if "step" in frame.columns:
            step = pl.col("step").cast(pl.Int64).replace_strict(self._numbers, default=None, return_dtype=pl.Int32)
            frame = frame.with_columns(step=step)
        self._sink.write(table, frame)


class WindowSink(_ForwardingSink):
    """The sink of one window of several: it passes flows, tasks of communication and timelines on, with `shift_ns`
    added to times.

    Flows get ids of their own.
    """

    def __init__(self, sink: Sink, shift_ns: int, number: int) -> None:
        super().__init__(sink)
        self._shift_ns = shift_ns
        self._number = number

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`. Readers write nothing but these tables before all windows are known."""
        if table is COMMUNICATION_TASKS:
            self._sink.write(table, frame.with_columns(pl.col("start_ns") + self._shift_ns))
            return
        if table is TIMELINES:
            self._sink.write(table, frame.with_columns(pl.col("zero_ns") + self._shift_ns))
            return
        if table is not FLOWS:
            raise ValueError(f"{table.name} is written after all windows")
        times = pl.col("from_ns", "to_ns") + self._shift_ns
        self._sink.write(table, frame.with_columns(times, flow=filled_in("{}.{}", pl.lit(self._number), "flow")))


class AddingSink(_ForwardingSink):
    """The sink of a part that adds to what others wrote of a rank: it passes some tables on, with numbers of `slices`
    that follow theirs.

    Args:
        sink: The sink of the input.
        tables: The tables that the part adds to; rows of others are dropped.
        slices: How many rows of `slices` there are already.
    """

    def __init__(self, sink: Sink, tables: Collection[Table], slices: int) -> None:
        super().__init__(sink)
        self._tables = tables
        self._slices = slices

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`."""
        if table not in self._tables:
            return
        numbers = [name for name in ("slice", "parent") if name in frame.columns]
        self._sink.write(table, frame.with_columns(pl.col(name) + self._slices for name in numbers))


class CountingSink(_ForwardingSink):
    """Passes all on to another sink, and knows how many rows there were besides who recorded them, and what was wrong
    with each file."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink)
        self.issue = self._issue
        self.rows = 0
        self.damaged: dict[Path, UnreadableInput] = {}

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`."""
        if table not in (RANKS, ISSUES, TIMELINES):
            self.rows += frame.height
        self._sink.write(table, frame)

    def _issue(self, severity: Severity, file: Path, problem: str, remedy: str, **more: Any) -> None:
        if severity != "note":
            self.damaged.setdefault(file, UnreadableInput(file, problem, remedy))
        self._sink.issue(severity, file, problem, remedy, **more)


@dataclass
class SilentSink:
    """Takes rows and issues, and keeps none of them: another part reads the same file, and reports its damage."""

    workers: int = 1

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`."""

    def issue(self, *_: object, **__: object) -> None:
        """See `Sink`."""

    def advance(self, count: int) -> None:
        """See `Sink`."""

    def scratch(self) -> Path:
        """See `Sink`.

        Raises:
            OSError: Always: there is nothing to keep.
        """
        raise OSError("no space left for intermediate files")
