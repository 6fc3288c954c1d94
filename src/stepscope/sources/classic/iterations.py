"""Raw profiles that were exported by iteration: read where MindSpore's own files do not tell steps and kernels."""

from __future__ import annotations

from stepscope.sources.ascend.iterations import write_iterations
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_steps import read_raw_steps

_OWN = ("step_trace", "timeline", "timeline_display")
"""What MindSpore makes of the same work, by another clock."""


def has_iterations(files: RankFiles) -> bool:
    """Whether a rank's steps and kernels are told by iterations alone."""
    return bool(files.all("iterations")) and not any(files.all(kind) for kind in _OWN)


def write_by_iteration(files: RankFiles, sink: Sink) -> None:
    """Write `kernels`, `collectives`, `steps` and `slices` of iterations.

    Raises:
        UnreadableInput: If there are iterations of which none can be read.
    """
    if not has_iterations(files):
        return
    trace = read_raw_steps(files.all("device_steps"), sink)
    write_iterations(files.all("iterations"), None if trace is None else trace.steps, files.path, sink)
