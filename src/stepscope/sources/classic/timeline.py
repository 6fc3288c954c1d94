"""What a device did when: steps, communication and kernels of a classic profile, put on one clock.

Steps and calls come from the step trace, kernels from `output_timeline_data`, else from the timeline. Without a step
trace, the timeline's own steps count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.figures import write_timeline_summary
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.iterations import has_iterations
from stepscope.sources.classic.operators import peek_types
from stepscope.sources.classic.ranks import device_kind
from stepscope.sources.classic.raw_clock import raw_trace, related
from stepscope.sources.classic.raw_steps import read_raw_steps, read_step_events
from stepscope.sources.classic.step_trace import StepTrace, read_step_trace
from stepscope.sources.classic.step_trace_totals import write_step_totals
from stepscope.sources.classic.timeline_display import Display, read_display
from stepscope.sources.classic.timeline_kernels import KernelRows, read_kernels, whole_recording
from stepscope.tables import COLLECTIVES, STEPS

_PREFERRED = ("ascend_", "timeline_", "gpu_", "cpu_")
"""The timeline of the device that the rank trains on."""


def write_device(files: RankFiles, sink: Sink) -> None:
    """Write steps, calls, kernels, totals of steps, and what the timeline's summary states."""
    if has_iterations(files):
        return
    path = files.one("step_trace")
    if path is not None:
        trace = read_step_trace(path, files.rank, sink)
    else:
        trace = read_raw_steps(files.all("device_steps")[-1:], sink)
        trace = trace or read_step_events(files.all("device_step_events")[-1:], sink)
    if trace is not None:
        trace = _with_graphs(files, trace, sink)
        on_device = {"on_device": pl.lit(value=False)} if device_kind(files) == "cpu" else {}
        sink.write(COLLECTIVES, trace.calls.with_columns(**on_device))
    steps, rows, display = _with_kernels(files, trace, sink)
    if steps is not None and (trace is not None or not _is_on_cpu(files)):
        if rows.steps and len(rows.steps) < steps.height:  # timelines end at a size limit
            steps = steps.with_columns(recorded=pl.col("step").is_in(sorted(rows.steps)))
        sink.write(STEPS, steps)
    if (totals := files.one("cluster_steps")) is not None:
        write_step_totals(totals, None if trace is None else trace.steps, sink)
    if (summary := _preferred(files.all("timeline_summary"))) is not None:
        summed_ns = rows.operators_ns if summary.name.startswith("ascend_") else rows.total_ns
        operations_ns = summed_ns or (display.operations_ns if display else 0)
        write_timeline_summary(summary, operations_ns, steps, sink)


def _with_graphs(files: RankFiles, trace: StepTrace, sink: Sink) -> StepTrace:
    """The step trace with the graph of each step, as far as only the raw profile beside it says it."""
    if trace.steps["graph"].null_count() < trace.steps.height:
        return trace
    clock = related(trace.steps, raw_trace(files, sink))
    if clock is None or clock.graphs.is_empty():
        return trace
    steps = trace.steps.drop("graph").join(clock.graphs, on="start_ns", how="left", maintain_order="left")
    return StepTrace(STEPS.shaped(steps), trace.calls)


def _is_on_cpu(files: RankFiles) -> bool:
    """Whether the timeline has the operators of a CPU job, which include the steps."""
    path = _preferred(files.all("timeline_display"))
    return path is not None and path.name.startswith("cpu_") and files.one("cpu_times") is not None


def _preferred(paths: Sequence[Path]) -> Path | None:
    """Of files that differ in the device in front of their name, the one that counts."""
    place = {prefix: at for at, prefix in enumerate(_PREFERRED)}
    return min(paths, key=lambda path: place.get(path.name.split("timeline_")[0] or "timeline_", 0), default=None)


def _with_kernels(
    files: RankFiles, trace: StepTrace | None, sink: Sink
) -> tuple[pl.DataFrame | None, KernelRows, Display | None]:
    """Write the kernels; returns the steps, what was written, and the timeline if it was read."""
    on_host = device_kind(files) == "cpu"
    steps, calls = (None, None) if trace is None else (trace.steps, trace.calls)
    timeline, path = files.one("timeline"), _preferred(files.all("timeline_display"))
    display = _display(path, sink) if steps is None else None
    if display is not None and not display.steps.is_empty():
        steps = display.steps
        rows = KernelRows(steps, sink)
        display.write_kernels(rows, on_host=on_host)
        return steps, rows, display
    rows = KernelRows(steps, sink)
    if timeline is not None:
        read_kernels(timeline, steps, peek_types(files), rows, sink)
    if not rows.rows:
        display = display if trace is None else _display(path, sink)
        problem = None if display is None else display.write_kernels(rows, steps, calls, on_host=on_host)
        if problem is not None and path is not None:
            place = None if rows.rows else "kernels"
            sink.issue("note", path, problem, "Nothing to do: steps are taken from the step trace.", place=place)
    if steps is None and rows.span is not None:
        steps = whole_recording(rows.span)
    return steps, rows, display


def _display(path: Path | None, sink: Sink) -> Display | None:
    if path is None:
        return None
    try:
        return read_display(path, sink)
    except UnreadableInput as error:
        sink.issue("error", path, error.problem, error.remedy)
        return None
