"""What an exported raw profile has that MindSpore's own files beside it lack: calls of the device's libraries on the
host, tasks of communication, and kernels if MindSpore exported none.

Its kernels are those of MindSpore's timeline, and its calls those of the step trace: each is kept once. Its own overlap
analysis is not read, since it follows from kernels and calls.
"""

from __future__ import annotations

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.exported_rank import STEPS, ExportedRank, shaped
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import ExportFiles
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.ascend.timeline import Kind, Timeline
from stepscope.sources.ascend.trace_view import read_trace_view
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.iterations import has_iterations
from stepscope.sources.classic.raw_clock import newest, raw_clock
from stepscope.sources.classic.step_trace import peek_steps
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import CpuFiles
from stepscope.sources.sinks import AddingSink, SilentSink, WindowSink
from stepscope.tables import (
    COMMUNICATION_TASKS,
    FLOWS,
    KERNEL_COUNTERS,
    KERNELS,
    OPERATORS,
    SLICES,
    STACKS,
)

_OWN_KERNELS = ("timeline", "timeline_display")
_TABLES = (FLOWS, KERNEL_COUNTERS, KERNELS, OPERATORS, SLICES, STACKS)


def write_beside(files: RankFiles, sink: Sink) -> None:
    """Write `slices`, `communication_tasks` and, if no other file has them, `kernels` of the trace of a raw profile.

    They are left out if the clock of the trace is unknown.
    """
    traces = newest(files.all("device_trace"))
    if not traces or has_iterations(files):
        return
    clock = raw_clock(files)
    if clock is None:
        problem = "its clock cannot be told from that of MindSpore's own files, so what it alone has is left out"
        remedy = "Nothing to do: steps and kernels are taken from the other files."
        sink.issue("note", traces[0], problem, remedy)
        return
    shifted = WindowSink(sink, clock.shift_ns, 0)
    recording = ExportedRank(RankInfo(format="classic"), Groups(), Timeline(sink.scratch))
    recording.steps = shaped(peek_steps(files), STEPS)
    recording.device_is_lost = True  # steps are written by others
    has_kernels = any(files.all(kind) for kind in _OWN_KERNELS)
    kinds: tuple[Kind, ...] = ("host",) if has_kernels else ("host", "compute", "tasks")
    operators = _operators_of(files)
    for file in traces:
        own = Timeline(sink.scratch)
        try:
            view = read_trace_view(file, own, shifted, with_cpu_operators=not operators)
        except UnreadableInput as error:
            sink.issue("error", file, error.problem, error.remedy)
            continue
        for tasks in view.parts.rows(recording.groups) if view.parts else ():
            # Processes in this trace do not have the numbers of devices.
            shifted.write(COMMUNICATION_TASKS, tasks.with_columns(device=pl.lit(None, pl.Int32)))
        for kind in kinds:
            for frame in own.taken(kind):
                recording.timeline.add(kind, frame.with_columns(pl.col("start_ns") + clock.shift_ns))
    write_tables(recording, ExportFiles(path=files.path), AddingSink(sink, _TABLES, operators))


def _operators_of(files: RankFiles) -> int:
    """How many ranges of operators on the host a file of MindSpore has."""
    found = CpuFiles.among(files.every)
    return 0 if found.times is None else read_executions(found.times, found.launches, SilentSink()).height
