"""MindSpore's record of its own runtime: Python, pipeline stages, kernel launches, each with its thread.

An environment variable enables it, which MindSpore reads at its first step; MindSpore writes it at the latest at exit,
to the directory in which the process started. Here it is requested at each `stop()` and moved to the recording.
MindSpore also prints a summary.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from stepscope.record.files import FILE_MODE, make_private
from stepscope.recording_format.layout import RUNTIME

log = logging.getLogger("stepscope")

VARIABLE = "MS_ENABLE_RUNTIME_PROFILER"


class RuntimeDetail:
    """Runs between `start` and `stop`. Needs step marks, which `Model.train` sets itself."""

    def __init__(self) -> None:
        self._runtime: Any = None  # only between `start` and `stop`
        self._place = Path.cwd()
        self._restored: str | None = None

    def start(self) -> None:
        """Start; recording begins with the next step."""
        from mindspore import _c_expression

        self._restored = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = "1"
        self._runtime = _c_expression
        self._runtime._framework_profiler_step_start()

    def step_ended(self) -> None:
        """A step of functional code is over; the next one begins."""
        if self._runtime is not None:
            self._runtime._framework_profiler_step_end()
            self._runtime._framework_profiler_step_start()

    def stop(self, directory: Path) -> None:
        """Write the data to `directory/runtime`."""
        runtime, self._runtime = self._runtime, None
        if runtime is None:
            return
        before = self._files()
        runtime._framework_profiler_clear()
        written = self._files() - before
        if not written:
            log.warning("Profiler: MindSpore wrote no runtime detail; set %s=1 before its first step", VARIABLE)
        for file in written:
            make_private(directory / RUNTIME)
            moved = Path(shutil.move(str(file), directory / RUNTIME / file.name))
            moved.chmod(FILE_MODE)
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
        if self._restored is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._restored

    def _files(self) -> set[Path]:
        return set(self._place.glob("rank_*/RuntimeProfiler*"))
