"""Usual reasons why a recording lacks a table, shared by several sources."""

from __future__ import annotations

from collections.abc import Mapping

_MEMORY = "recorded without profile_memory=True"

PROFILER: Mapping[str, str] = {
    "operators": "recorded without CPU activities",
    "allocations": _MEMORY,
    "memory_curve": _MEMORY,
    "flows": "no flows between forward and backward work were recorded",
    "stacks": "recorded without with_stack=True",
}
"""Options of a framework's profiler that were off."""

ASCEND: Mapping[str, str] = {
    **PROFILER,
    **dict.fromkeys(("groups", "collectives"), "one device only, or recorded at profiler level 0"),
    "kernels": "recorded without NPU activities",
    "kernel_counters": "recorded without aic_metrics",
    "counters": "no frequencies were recorded",
    "input_pipeline": "only MindSpore's dataset profiling records it",
    "host_usage": "host usage was not sampled",
}
"""Options of an Ascend profiler that were off."""
