"""Operators on the CPU: of jobs without a device, and on the host of jobs with one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.flops import read_flops
from stepscope.sources.classic.ranks import device_kind
from stepscope.sources.classic.raw_clock import raw_clock
from stepscope.sources.classic.step_trace import peek_steps
from stepscope.sources.classic.timeline_display import step_bars, steps_of
from stepscope.sources.classic.timeline_kernels import whole_recording
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import CpuFiles, Unit
from stepscope.sources.mindspore_cpu.memory import read_memory
from stepscope.sources.mindspore_cpu.totals import read_totals
from stepscope.sources.sinks import SilentSink
from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.sources.windows import span_of
from stepscope.tables import MEMORY_CURVE, OPERATOR_TOTALS, OPERATORS, SLICES, STEPS

_EVENTS = Layout((EventClass("events", frozenset({"X"}), None),))


def write_cpu_operators(files: RankFiles, sink: Sink) -> None:
    """Write `operator_totals`, `operators` with their `slices`, `steps` and `memory_curve` of operators on the CPU.

    Times are by the clock of the files: the host's monotonic one until MindSpore 2.5. Only a job without a device has
    steps by that clock; host operators of a device job have none, unless a raw profile with the same clock leads to
    that of the device. Steps are those of the step trace, if there is one.
    """
    found = CpuFiles.among(files.every)
    if not found.all:
        return
    unit: Unit = "HOST_CPU" if device_kind(files) in ("npu", "cuda") else "CPU"
    sink.write(OPERATOR_TOTALS, _with_flops(read_totals(found, unit, sink), files, sink))
    if found.times is not None:
        rows = read_executions(found.times, found.launches, sink)
        clock = raw_clock(files)
        shift = 0 if clock is None else clock.shift_of(rows["start_ns"])
        rows = rows.with_columns(pl.col("start_ns") + shift)
        steps = peek_steps(files) if unit == "CPU" or shift else STEPS.frame()
        if unit == "CPU" and steps.is_empty() and (span := span_of(rows)) is not None:
            steps = _steps(files.one("timeline_display"), sink.workers)
            steps = steps if steps.height else whole_recording(span)
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
    ranges = steps.select("step", "end_ns", step_ns="start_ns")
    joined = rows.drop("short").join_asof(ranges, left_on="start_ns", right_on="step_ns")
    step = pl.when(pl.col("start_ns") <= pl.col("end_ns")).then("step")  # null between steps
    placed = joined.with_columns(slice=pl.int_range(pl.len()), self_ns="duration_ns", step=step)
    placed = placed.drop("step_ns", "end_ns")
    slices = placed.drop("type", "input_shapes")
    sink.write(SLICES, slices.with_columns(category=pl.lit("operator"), depth=pl.lit(0, pl.Int32)))
    sink.write(OPERATORS, placed)


def _steps(timeline: Path | None, workers: int) -> pl.DataFrame:
    """The steps in the timeline of a CPU job; none if it is missing or damaged.

    Damage is reported by the reader of the timeline.
    """
    if timeline is None or not timeline.name.startswith("cpu_"):
        return STEPS.frame()
    bars: list[pl.DataFrame] = []
    try:
        for batch in TraceEvents(timeline, _EVENTS, SilentSink(workers)):
            if (events := batch.get("events")) is not None:
                bars.append(step_bars(events))
    except UnreadableInput:
        return STEPS.frame()
    return steps_of(bars)
