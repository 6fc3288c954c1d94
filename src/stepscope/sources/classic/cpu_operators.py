"""Operators on the CPU: of jobs without a device, and on the host of jobs with one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.flops import read_flops
from stepscope.sources.classic.ranks import device_kind
from stepscope.sources.classic.step_bars import step_bars, steps_of
from stepscope.sources.classic.step_trace import read_step_trace
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import CpuFiles, Unit
from stepscope.sources.mindspore_cpu.memory import read_memory
from stepscope.sources.mindspore_cpu.totals import read_totals
from stepscope.sources.sinks import SilentSink
from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.sources.windows import span_of
from stepscope.tables import MEMORY_CURVE, OPERATOR_TOTALS, OPERATORS, SLICES, STEPS
from stepscope.tables.steps import WHOLE_RECORDING

_KINDS = ("cpu_types", "cpu_operators", "cpu_times", "cpu_framework", "cpu_memory")
_EVENTS = Layout((EventClass("events", frozenset({"X"}), None),))


def write_cpu_operators(files: RankFiles, sink: Sink) -> None:
    """Write `operator_totals`, `operators` with their `slices`, `steps` and `memory_curve` of operators on the CPU.

    Times are by the clock of the files: the host's monotonic one until MindSpore 2.5. Only a job without a device has
    steps by that clock; host operators of a device job have none. Steps are those of the step trace, if there is one.
    """
    found = CpuFiles.among(file for kind in _KINDS for file in files.all(kind))
    if not found.all:
        return
    unit: Unit = "HOST_CPU" if device_kind(files) in ("npu", "cuda") else "CPU"
    sink.write(OPERATOR_TOTALS, _with_flops(read_totals(found, unit, sink), files, sink))
    if found.times is not None:
        rows = read_executions(found.times, found.launches, sink)
        steps = _traced(files) if unit == "CPU" else STEPS.frame()
        if unit == "CPU" and rows.height and steps.is_empty():
            steps = _steps(files.one("timeline_display"), sink.workers)
            steps = steps if steps.height else _whole(rows)
            sink.write(STEPS, steps)
        _write_executions(rows, steps, sink)
    if found.memory is not None:
        sink.write(MEMORY_CURVE, read_memory(found.memory, sink))


def _with_flops(totals: pl.DataFrame, files: RankFiles, sink: Sink) -> pl.DataFrame:
    """Totals with the FLOPs of each operator, unless a device's list has them."""
    flops = read_flops(files.one("flops"), sink) if files.one("device_operators") is None else None
    if flops is None:
        return totals
    known = flops.select("full_name", "cube_flops", "vector_flops")
    return totals.drop("cube_flops", "vector_flops").join(known, on="full_name", how="left", maintain_order="left")


def _write_executions(rows: pl.DataFrame, steps: pl.DataFrame, sink: Sink) -> None:
    """Write operators; kernels of the CPU do not call each other, so all of their time is their own."""
    placed = rows.with_columns(
        slice=pl.int_range(pl.len()), self_ns="duration_ns", step=_step_of(rows["start_ns"], steps)
    )
    slices = placed.drop("short", "type", "input_shapes")
    extra = {"category": pl.lit("operator"), "depth": pl.lit(0, pl.Int32)}
    sink.write(SLICES, slices.with_columns(**extra))
    sink.write(OPERATORS, placed.drop("short"))


def _traced(files: RankFiles) -> pl.DataFrame:
    """The steps of the step trace, if any; `timeline` writes them and reports damage."""
    path = files.one("step_trace")
    trace = None if path is None else read_step_trace(path, files.rank, SilentSink())
    return STEPS.frame() if trace is None else trace.steps


def _steps(timeline: Path | None, workers: int) -> pl.DataFrame:
    """The steps in the timeline of a CPU job; none if it is missing or damaged.

    Damage is reported by the reader of the timeline.
    """
    if timeline is None or not timeline.name.startswith("cpu_"):
        return STEPS.frame()
    bars: list[pl.DataFrame] = []
    try:
        for batch in TraceEvents(timeline, _EVENTS, report=SilentSink().issue, workers=workers):
            if (events := batch.frames.get("events")) is not None:
                bars.append(step_bars(events).select("name", "start_ns", "duration_ns"))
    except UnreadableInput:
        return STEPS.frame()
    return steps_of(pl.concat(bars)) if bars else STEPS.frame()


def _whole(rows: pl.DataFrame) -> pl.DataFrame:
    """One step 0 for all of a recording without steps."""
    start, end = span_of(rows) or (0, 0)
    window = {"window_start_ns": [start], "window_end_ns": [end], "window": [WHOLE_RECORDING]}
    return STEPS.frame(step=[0], start_ns=[start], end_ns=[end], **window)


def _step_of(starts: pl.Series, steps: pl.DataFrame) -> pl.Series:
    """The step in which each operator starts; null between steps."""
    ranges = steps.select("step", "start_ns", "end_ns")
    joined = starts.to_frame("at").join_asof(ranges, left_on="at", right_on="start_ns")
    return joined.select(step=pl.when(pl.col("at") <= pl.col("end_ns")).then("step")).to_series()
