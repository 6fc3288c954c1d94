"""Usual reasons why a recording lacks a table, as far as several sources share them."""

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
"""What a user of a framework's profiler leaves off."""

ASCEND: Mapping[str, str] = {
    **PROFILER,
    **dict.fromkeys(("groups", "collectives"), "one device only, or recorded at profiler level 0"),
    "kernels": "recorded without NPU activities",
    "kernel_counters": "recorded without aic_metrics",
    "counters": "no frequencies were recorded",
    "input_pipeline": "only MindSpore's dataset profiling writes them",
    "host_usage": "no samples of the host were recorded",
}
"""What an Ascend profiler was told to leave out."""
