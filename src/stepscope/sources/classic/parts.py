"""The parts of a classic profile: what is read of each kind of file, one function a subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepscope.sources.base import Sink
from stepscope.sources.classic.calls import write_calls
from stepscope.sources.classic.cpu_operators import write_cpu_operators
from stepscope.sources.classic.device_peak import write_device_peak
from stepscope.sources.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.flops_summary import write_flop_scopes, write_flops_summary
from stepscope.sources.classic.gpu_operators import write_gpu_operators
from stepscope.sources.classic.host_info import write_host_info
from stepscope.sources.classic.iterations import write_by_iteration
from stepscope.sources.classic.memory import write_memory
from stepscope.sources.classic.minddata import write_data_preparation
from stepscope.sources.classic.operators import write_device_operators
from stepscope.sources.classic.operators_ai_cpu import write_ai_cpu
from stepscope.sources.classic.operators_pynative import write_pynative
from stepscope.sources.classic.ranks import write_ranks
from stepscope.sources.classic.recommendations import write_recommendations
from stepscope.sources.classic.step_trace_points import write_step_points
from stepscope.sources.classic.timeline import write_device

Part = Callable[[RankFiles, Sink], None]
"""Reads some kinds of files of a rank, if they are there, and writes tables.

Tells damage by `sink.issue` with the file's name and reads on; what it cannot read at all raises `UnreadableInput`,
which costs that part alone."""

PARTS: Sequence[Part] = (
    write_ranks,
    write_device,
    write_step_points,
    write_device_operators,
    write_ai_cpu,
    write_pynative,
    write_gpu_operators,
    write_flops_summary,
    write_flop_scopes,
    write_data_preparation,
    write_dynamic_shapes,
    write_host_info,
    write_memory,
    write_recommendations,
    write_calls,
    write_cpu_operators,
    write_by_iteration,
    write_device_peak,
)
"""All parts. The row of `ranks` comes first."""
