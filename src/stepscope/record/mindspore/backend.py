"""The MindSpore backend of the recorder, assembled from the other modules of this package."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.record.backend import Identity, Surroundings
from stepscope.record.hooks import Hooks
from stepscope.record.mindspore import identity
from stepscope.record.mindspore.calls import CallHooks
from stepscope.record.mindspore.collectives import Collectives
from stepscope.record.mindspore.compiling import GraphCompileHooks
from stepscope.record.mindspore.cpu_windows import CpuWindows
from stepscope.record.mindspore.device_windows import DeviceWindows
from stepscope.record.mindspore.loader import Loader
from stepscope.record.mindspore.minddata import MindData
from stepscope.record.mindspore.model_train import ModelTrain
from stepscope.record.mindspore.runtime_detail import RuntimeDetail
from stepscope.record.mindspore.saving import Saving
from stepscope.record.options import Options
from stepscope.record.steps import StepTracker

log = logging.getLogger("stepscope")


class MindSporeBackend:
    """Records graph mode, PyNative and `ms.jit`; see `Backend` for the methods.

    Raises:
        RuntimeError: For a device that MindSpore does not run on.
    """

    def __init__(self) -> None:
        self.target = identity.target()
        self.counts_events, self.window_events = False, 0
        self.window_kind = CpuWindows.kind if self.target == "cpu" else DeviceWindows.kind
        self._hooks = Hooks()
        self._windows: CpuWindows | DeviceWindows | None = None
        self._calls: CallHooks | None = None
        self._train: ModelTrain | None = None
        self._data: MindData | None = None
        self._loader: Loader | None = None
        self._detail: RuntimeDetail | None = None

    @property
    def window_cut(self) -> tuple[int, int] | None:
        """Where the last window ended early because the script's own profiler began."""
        return self._windows.cut if isinstance(self._windows, CpuWindows) else None

    def identity(self) -> Identity:
        """Rank and world size."""
        return identity.identity()

    def surroundings(self) -> Surroundings:
        """Framework, device and job, as far as known."""
        around = identity.surroundings()
        if around.mode == "pynative" and self._calls is not None and self._calls.trains_compiled:
            around.mode = "jit"
        return around

    def lacks(self, options: Options) -> dict[str, str]:
        """Requested options that are not supported."""
        if self.target == "cpu" and options.with_stack:
            return {"host_stack": "MindSpore does not record Python stacks on CPU"}
        return {}

    def attach(self, steps: StepTracker, options: Options) -> None:
        """Install the hooks. One that this release of MindSpore does not support is skipped with a warning."""
        if self.target == "cpu":
            self._windows = windows = CpuWindows(
                lambda: identity.identity().rank or 0, lambda: steps.number, memory=options.profile_memory
            )
            self._try("operators next to other profilers", lambda: windows.install(self._hooks))
        else:
            self._windows = DeviceWindows(options)
        if options.runtime_detail:
            self._detail = RuntimeDetail()
        self._data = MindData(options.sampling_interval) if options.data_process else None
        self._try("calls of cells", lambda: self._install_steps(steps))
        self._loader = Loader(steps, self._epoch_over, marks=options.data_process)
        for part in (self._loader, Saving(steps), GraphCompileHooks(steps), Collectives(steps), self._data):
            if part is not None:
                self._try(type(part).__name__, lambda part=part: part.install(self._hooks))  # type: ignore[misc]
        self._try("groups", lambda: identity.watch_groups(self._hooks, steps))
        self._hooks.apply()

    def detach(self) -> None:
        """Remove all hooks."""
        if self._train is not None:
            self._train.remove()
        if self._data is not None:
            self._try("MindData", self._data.remove)
        self._hooks.undo()

    def started(self, directory: Path) -> None:
        """Start observing the input pipeline, and the runtime if requested."""
        if self._data is not None:
            self._try("MindData", lambda: self._data.start(directory))  # type: ignore[union-attr]
        if self._detail is not None:
            self._try("runtime detail", self._detail.start)

    def stopped(self, directory: Path) -> None:
        """Write what was observed."""
        if self._data is not None:
            self._try("MindData", self._data.stop)
        if self._detail is not None:
            self._try("runtime detail", lambda: self._detail.stop(directory))  # type: ignore[union-attr]

    def begin_window(self, directory: Path) -> None:
        """Start recording operators.

        Raises:
            RuntimeError: If another profiler of MindSpore is active.
        """
        assert self._windows is not None, "attach() comes first"
        self._windows.begin(directory)

    def end_window(self, directory: Path) -> Callable[[], list[str]] | None:
        """Stop recording operators; the returned function tidies the files."""
        assert self._windows is not None, "attach() comes first"
        return self._windows.end(directory)

    def worker_pids(self) -> dict[int, str]:
        """Processes that load data."""
        children: Any = getattr(multiprocessing.process, "_children", ())  # active_children() would reap some
        return {
            int(child.pid): type(child).__name__.strip("_")
            for child in list(children)
            if child.pid is not None and _loads_data(child)
        }

    def in_data_worker(self) -> bool:
        """Whether this process does not train: it loads data for another one, or is the scheduler of `msrun`."""
        return os.environ.get("MS_ROLE") == "MS_SCHED" or _loads_data(multiprocessing.current_process())

    def _install_steps(self, steps: StepTracker) -> None:
        self._calls = CallHooks(steps, self._step_ended)
        self._calls.install(self._hooks)
        self._train = ModelTrain(steps, self._calls)
        self._train.install(self._hooks)

    def _step_ended(self) -> None:
        if self._loader is not None:
            self._loader.step_ended()
        if self._detail is not None:
            self._detail.step_ended()

    def _epoch_over(self, iterator: Any) -> None:
        if self._data is not None:
            self._data.epoch_over(iterator)

    def _try(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            log.warning("Profiler: %s cannot be recorded (%s: %s)", what, type(error).__name__, error)


def _loads_data(process: Any) -> bool:
    return type(process).__module__.startswith("mindspore.dataset")
