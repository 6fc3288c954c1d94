"""Operators on the CPU: of jobs without a device, and those that run on the host beside one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.ranks import device_kind
from stepscope.sources.mindspore_cpu import CpuFiles, Unit, read_executions, read_memory, read_totals
from stepscope.sources.trace_events import read_events
from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.tables import MEMORY_CURVE, OPERATOR_TOTALS, OPERATORS, SLICES, STEPS

_KINDS = ("cpu_types", "cpu_operators", "cpu_times", "cpu_framework", "cpu_memory")
_EVENTS = Layout((EventClass("events", frozenset({"X"}), None),))
_STEPS_THREAD = "100000"
"""Thread of the timeline whose events are the steps."""


def write_cpu_operators(files: RankFiles, sink: Sink) -> None:
    """Write `operator_totals`, `operators` with their `slices`, `steps` and `memory_curve` of operators on the CPU.

    Times are by the clock of the files: the host's monotonic one until MindSpore 2.5. Only a job without a device has
    steps by that clock; operators beside a device have none.
    """
    found = CpuFiles.among(file for kind in _KINDS for file in files.all(kind))
    if not found.all:
        return
    unit: Unit = "HOST_CPU" if device_kind(files) in ("npu", "cuda") else "CPU"
    sink.write(OPERATOR_TOTALS, read_totals(found, unit, sink))
    try:
        if found.times is not None:
            steps = _steps(files.one("timeline_display"), sink) if unit == "CPU" else STEPS.frame()
            sink.write(STEPS, steps)
            _write_executions(read_executions(found.times, found.launches, sink), steps, unit, sink)
        if found.memory is not None:
            sink.write(MEMORY_CURVE, read_memory(found.memory, sink))
    except OSError as error:
        sink.issue("error", Path(str(error.filename)), f"cannot be read: {error.strerror}", "Copy the file again")


def _write_executions(rows: pl.DataFrame, steps: pl.DataFrame, unit: Unit, sink: Sink) -> None:
    """Write operators; kernels of the CPU do not call each other, so all of their time is their own."""
    placed = rows.with_columns(
        slice=pl.int_range(pl.len()), self_ns="duration_ns", step=_step_of(rows["start_ns"], steps)
    )
    if unit == "CPU" and steps.is_empty():
        placed = placed.with_columns(step=pl.lit(0, pl.Int32))
    slices = placed.drop("short", "type", "input_shapes")
    extra = {"category": pl.lit("operator"), "depth": pl.lit(0, pl.Int32)}
    sink.write(SLICES, SLICES.conform(slices.with_columns(**extra)))
    sink.write(OPERATORS, OPERATORS.conform(placed.drop("short")))


def _steps(timeline: Path | None, sink: Sink) -> pl.DataFrame:
    """The steps that the timeline of a job on the CPU states; none where it is missing or damaged."""
    if timeline is None or not timeline.name.startswith("cpu_"):
        return STEPS.frame()
    frames = []
    try:
        for batch in read_events(timeline, _EVENTS, report=sink.issue, workers=sink.workers):
            events = batch.frames["events"]
            frames.append(events.filter(pl.col("thread") == _STEPS_THREAD, pl.col("name").str.contains(r"^\d{1,9}$")))
    except UnreadableInput as error:
        sink.issue("error", timeline, error.problem, error.remedy, place="steps")
        return STEPS.frame()
    if not frames:
        return STEPS.frame()
    end = pl.col("start_ns") + pl.col("duration_ns")
    found = pl.concat(frames).drop_nulls(["start_ns", "duration_ns"]).sort("start_ns")
    ranges = found.select(step=pl.col("name").cast(pl.Int32), start_ns="start_ns", end_ns=end).unique("step")
    return STEPS.conform(
        ranges.sort("start_ns").with_columns(
            window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("stated", pl.String)
        )
    )


def _step_of(starts: pl.Series, steps: pl.DataFrame) -> pl.Series:
    """The step in which each operator starts; null between steps."""
    ranges = steps.select("step", "start_ns", "end_ns")
    joined = starts.to_frame("at").join_asof(ranges, left_on="at", right_on="start_ns")
    return joined.select(step=pl.when(pl.col("at") <= pl.col("end_ns")).then("step")).to_series()
