"""Exported raw profiles, by iteration or in one trace, used if MindSpore's files have no steps and kernels."""

from __future__ import annotations

from pathlib import Path

from stepscope.sources.ascend.iterations import write_iterations
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_links import write_raw_links
from stepscope.sources.classic.raw_steps import read_raw_steps
from stepscope.sources.classic.step_events import read_step_events
from stepscope.sources.sinks import SilentSink

_OWN = ("step_trace", "timeline", "timeline_display")
"""What MindSpore makes of the same work, by another clock."""


def has_iterations(files: RankFiles) -> bool:
    """Whether only the export of the raw profile has a rank's steps and kernels."""
    return bool(exported(files)) and not any(files.all(kind) for kind in _OWN)


def exported(files: RankFiles) -> list[Path]:
    """The traces of the export: those of its iterations, otherwise the newest whole one."""
    return files.all("iterations") or _newest(files.all("device_trace"))


def _newest(paths: list[Path]) -> list[Path]:
    """The parts of the export that has the latest time in its name."""
    times = {path: path.stem.rsplit("_", 1)[-1] for path in paths}
    return [path for path in paths if times[path] == max(times.values())]


def write_by_iteration(files: RankFiles, sink: Sink) -> None:
    """Write `kernels`, `collectives`, `steps`, `slices` and `links` of iterations.

    Raises:
        UnreadableInput: If there are iterations of which none can be read.
    """
    if not has_iterations(files):
        return
    traces = exported(files)
    is_whole = not files.all("iterations")
    stated, marks = files.all("device_steps"), files.all("device_step_events")
    trace = read_raw_steps(_newest(stated) if is_whole else stated, sink)
    trace = trace or read_step_events(_newest(marks) if is_whole else marks, sink)
    if trace is None:  # they are in the files of whole iterations, too
        trace = read_step_events([file for file in traces if file.name.startswith("msprof_")], SilentSink())
    known = None if trace is None else trace.steps
    details = _newest(files.all("device_summary")) if is_whole else []
    steps = write_iterations(traces, known, files.path, sink, details)
    write_raw_links(files, traces, steps, sink)
