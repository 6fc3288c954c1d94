"""placeholder"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """The options in effect, after checks and fallbacks."""

    output_path: str = "./data"
    start_profile: bool = True
    op_time: bool = True
    timeline_limit: int = 500
    profile_framework: str | None = "all"
    data_process: bool = True
    sync_enable: bool = True
    profile_memory: bool = False
    profile_communication: bool = False
    parallel_strategy: bool = True
    aicore_metrics: int = 0
    l2_cache: bool = False
    hbm_ddr: bool = False
    pcie: bool = False
    profiler_level: str | None = None
    data_simplification: bool = True
    host_stack: bool = True
    ascend_job_id: str = ""
    # beyond the reference
    schedule: Any = None
    on_trace_ready: Callable[[Any], object] | None = None
    steps: tuple[int, int] | None = None
    epochs: tuple[int, int] | None = None
    record_shapes: bool = True
    with_stack: bool = False
    window_seconds: float = 5.0
    sampling_interval: int = 1000
    runtime_detail: bool = False
    framework: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    """`PROFILING_FP_START`, `PROFILING_BP_END` and the like, as they were at the start."""
