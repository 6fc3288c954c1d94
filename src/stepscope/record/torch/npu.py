"""Windows of operators on Ascend, recorded by `torch_npu.profiler`, which writes its own directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.record.backend import OperatorWindows, Written
from stepscope.record.options import Options
from stepscope.recording_format.layout import ASCEND


class NpuWindows(OperatorWindows):
    """Records operators with torch_npu's profiler, which writes to the window's directory."""

    kind = ASCEND

    def __init__(self, options: Options) -> None:
        self._options = options
        self._profile: Any = None

    def begin(self, directory: Path) -> None:
        """Start recording."""
        profiler = sys.modules["torch_npu"].profiler
        level = getattr(profiler.ProfilerLevel, self._options.profiler_level or "Level0")
        self._profile = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            record_shapes=self._options.record_shapes,
            profile_memory=self._options.profile_memory,
            with_stack=self._options.with_stack,
            experimental_config=profiler._ExperimentalConfig(profiler_level=level, l2_cache=self._options.l2_cache),
            on_trace_ready=profiler.tensorboard_trace_handler(str(directory), analyse_flag=False),
        )
        self._profile.start()

    def end(self, directory: Path) -> Callable[[], Written] | None:
        """Stop recording; raw data is then on disk, and another thread exports it."""
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        profile.stop()

        def analyse() -> Written:
            sys.modules["torch_npu"].profiler.profiler.analyse(str(directory))
            return sorted(path.name for path in directory.iterdir()), None

        return analyse

    def in_child(self) -> None:
        """A forked child records nothing."""
        self._profile = None
