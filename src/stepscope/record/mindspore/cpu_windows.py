"""Operator windows on CPU: MindSpore's C++ profiler, with the barriers that make its counts exact."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from stepscope.record.backend import OperatorWindows, Written
from stepscope.record.files import FILE_MODE
from stepscope.record.hooks import Hooks
from stepscope.record.mindspore.identity import executors, identity
from stepscope.recording_format.layout import MINDSPORE_CPU

_RANK = re.compile(r"^(cpu_\w+?)_\d+(\.\w+)$")
_MEMORY = "cpu_ms_memory_record"


class CpuWindows(OperatorWindows):
    """Records the operators of the CPU.

    Args:
        step: Returns the number of the last completed step.
        memory: Also record the allocator.
    """

    kind = MINDSPORE_CPU

    def __init__(self, step: Callable[[], int], *, memory: bool) -> None:
        self._step = step
        self._memory = memory
        self._began_ns = 0
        self._records = False

    def install(self, hooks: Hooks) -> None:
        """Yield to MindSpore's own profiler when it begins: both share one engine, which it would take over."""
        from mindspore.profiler.profiler_interface import ProfilerInterface

        hooks.around(ProfilerInterface, "init", lambda _args, _kwargs: self._give_way(), lambda _token, _returned: None)

    def begin(self, directory: Path) -> None:
        refuse_second_profiler()
        wait_for_operators()  # otherwise operators of earlier steps end up in this window
        profiler = _profiler()
        self.cut, self._records = None, True
        self._began_ns = time.time_ns()
        profiler.init(str(directory))
        profiler.step_profiling_enable(True)
        profiler.enable_op_time()
        if self._memory:
            profiler.enable_profile_memory()

    def end(self, directory: Path) -> Callable[[], Written]:
        """End the window; the returned function tidies its files, on another thread."""
        self._stop()
        began_ns, rank = self._began_ns, identity().rank or 0
        return lambda: (_tidy(directory, rank, began_ns), None)

    def _stop(self) -> None:
        """Stop once only: a second stop could hit another profiler."""
        if self._records:
            self._records = False
            wait_for_operators()  # otherwise operators of the last steps are lost
            _profiler().stop()

    def _give_way(self) -> None:
        """Another profiler begins: keep what was recorded so far."""
        if self._records:
            self.cut = self._step(), perf_counter_ns()
            self._stop()


def wait_for_operators() -> None:
    """Wait until all launched operators have run."""
    executors()._pynative_executor.sync()


def refuse_second_profiler() -> None:
    """Refuse to start while MindSpore's own profiler is active: both share one engine and would mix their data.

    Raises:
        RuntimeError: If MindSpore's own `Profiler` or `profile` is active.
    """
    interface = getattr(sys.modules.get("mindspore.profiler.profiler_interface"), "ProfilerInterface", None)
    if getattr(interface, "is_initialized", False):
        raise RuntimeError("MindSpore's own profiler is active; stop it and analyse its data first, or do not use it")


def _profiler() -> Any:
    from mindspore._c_expression import Profiler

    return Profiler.get_instance("CPU")


def _tidy(directory: Path, rank: int, began_ns: int) -> list[str]:
    """Put the rank into file names, make files private and drop rows of earlier windows."""
    names = []
    for file in sorted(directory.iterdir()):
        fitting = _RANK.match(file.name)
        if fitting is None:
            continue
        named = file.with_name(f"{fitting[1]}_{rank}{fitting[2]}")
        if named != file:
            file.rename(named)
        if fitting[1] == _MEMORY:
            _drop_earlier(named, began_ns)
        named.chmod(FILE_MODE)
        names.append(named.name)
    return names


def _drop_earlier(file: Path, began_ns: int) -> None:
    """The file repeats all rows since the process began; keep its header and those since `began_ns`."""
    header, *rows = file.read_text().splitlines(keepends=True)
    since = [row for row in rows if row.split(",", 1)[0].isdigit() and int(row.split(",", 1)[0]) >= began_ns]
    file.write_text("".join([header, *since]))
