"""Operator windows on Ascend and GPU: MindSpore's own profiler interface, with our options translated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.record.backend import OperatorWindows, Written
from stepscope.record.files import protect
from stepscope.record.mindspore.cpu_windows import refuse_second_profiler, wait_for_operators
from stepscope.record.options import Options
from stepscope.recording_format.layout import ASCEND

AICORE_METRICS = {
    -1: "AiCoreNone",
    0: "ArithmeticUtilization",
    1: "PipeUtilization",
    2: "Memory",
    3: "MemoryL0",
    4: "ResourceConflictRatio",
    5: "MemoryUB",
    6: "L2Cache",
}
"""Names of `aicore_metrics` in `mindspore.profiler.AicoreMetrics`."""
DEFAULT_LEVEL = "Level0"


class DeviceWindows(OperatorWindows):
    """Records the operators of an accelerator."""

    kind = ASCEND

    def __init__(self, options: Options) -> None:
        self._options = options
        self._profile: Any = None

    def begin(self, directory: Path) -> None:
        refuse_second_profiler()
        from mindspore import profiler

        wait_for_operators()
        profiler.tensorboard_trace_handler(str(directory), analyse_flag=False)  # this is what sets the directory
        self._profile = profiler.profile(**arguments(self._options, profiler))
        self._profile.start()

    def end(self, directory: Path) -> Callable[[], Written] | None:
        """End the window; the returned function lists the profiler's files, made private."""
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        wait_for_operators()
        profile.stop()
        return lambda: ([str(path.relative_to(directory)) for path in protect(directory) if path.is_file()], None)


def arguments(options: Options, profiler: Any) -> dict[str, Any]:
    """Our options as arguments of `profile` of the module `mindspore.profiler`."""
    level = options.profiler_level or DEFAULT_LEVEL
    metrics = "AiCoreNone" if level == DEFAULT_LEVEL else AICORE_METRICS[options.aicore_metrics]
    return {
        "activities": [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        "with_stack": options.host_stack,
        "profile_memory": options.profile_memory,
        "data_process": options.data_process,
        "parallel_strategy": options.parallel_strategy,
        "start_profile": False,
        "hbm_ddr": options.hbm_ddr,
        "pcie": options.pcie,
        "sync_enable": options.sync_enable,
        "record_shapes": options.record_shapes,
        "experimental_config": profiler._ExperimentalConfig(
            profiler_level=getattr(profiler.ProfilerLevel, level),
            aic_metrics=getattr(profiler.AicoreMetrics, metrics),
            l2_cache=options.l2_cache,
            data_simplification=options.data_simplification,
        ),
    }
