"""Raw profiles that were exported by iteration: read where MindSpore's own files do not tell steps and kernels."""

from __future__ import annotations

from stepscope.sources.ascend.iterations import write_iterations
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_links import write_raw_links
from stepscope.sources.classic.raw_steps import read_raw_steps
from stepscope.sources.classic.silent_sink import SilentSink
from stepscope.sources.classic.step_events import read_step_events

_OWN = ("step_trace", "timeline", "timeline_display")
"""What MindSpore makes of the same work, by another clock."""


def has_iterations(files: RankFiles) -> bool:
    """Whether a rank's steps and kernels are told by iterations alone."""
    return bool(files.all("iterations")) and not any(files.all(kind) for kind in _OWN)


def write_by_iteration(files: RankFiles, sink: Sink) -> None:
    """Write `kernels`, `collectives`, `steps`, `slices` and `links` of iterations.

    Raises:
        UnreadableInput: If there are iterations of which none can be read.
    """
    if not has_iterations(files):
        return
    exported = files.all("iterations")
    trace = read_raw_steps(files.all("device_steps"), sink) or read_step_events(files.all("device_step_events"), sink)
    if trace is None:  # they are in the files of whole iterations, too
        trace = read_step_events([file for file in exported if file.name.startswith("msprof_")], SilentSink())
    steps = write_iterations(exported, None if trace is None else trace.steps, files.path, sink)
    write_raw_links(files, steps, sink)
