"""The MindSpore backend of the recorder, assembled from the other modules of this package."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.record.backend import Backend, InProgress, Surroundings
from stepscope.record.environment import Identity
from stepscope.record.hooks import Hooks
from stepscope.record.mindspore import identity
from stepscope.record.mindspore.calls import CallHooks
from stepscope.record.mindspore.collectives import mark_collectives
from stepscope.record.mindspore.cpu_windows import CpuWindows
from stepscope.record.mindspore.device_windows import DeviceWindows
from stepscope.record.mindspore.loader import Loader
from stepscope.record.mindspore.minddata import MindData
from stepscope.record.mindspore.model_train import ModelTrain
from stepscope.record.mindspore.phases import Inside, mark_checkpoints, mark_compilations
from stepscope.record.mindspore.runtime_detail import RuntimeDetail
from stepscope.record.options import Options
from stepscope.record.steps import StepTracker

log = logging.getLogger("stepscope")


class MindSporeBackend(Backend):
    """Records graph mode, PyNative and `ms.jit`.

    Raises:
        RuntimeError: For a device that MindSpore does not run on.
    """

    def __init__(self) -> None:
        self.target = identity.target()
        self._hooks = Hooks()
        self._calls: CallHooks | None = None
        self._train: ModelTrain | None = None
        self._data: MindData | None = None
        self._loader: Loader | None = None
        self._detail: RuntimeDetail | None = None
        self._inside: Inside = {}

    def identity(self) -> Identity:
        return identity.identity()

    def surroundings(self) -> Surroundings:
        around = identity.surroundings()
        if around.mode == "pynative" and self._calls is not None and self._calls.trains_compiled:
            around.mode = "jit"
        return around

    def lacks(self, options: Options) -> dict[str, str]:
        if self.target == "cpu" and options.with_stack:
            return {"host_stack": "MindSpore does not record Python stacks on CPU"}
        return {}

    def attach(self, steps: StepTracker, options: Options) -> None:
        """Install the hooks. One that this release of MindSpore does not support is skipped with a warning."""
        hooks = self._hooks
        if self.target != "cpu":
            self.windows = DeviceWindows(options)
        elif not steps.light:
            self.windows = windows = CpuWindows(lambda: steps.number, memory=options.profile_memory)
            _try("operators next to other profilers", windows.install, hooks)
        if options.runtime_detail:
            self._detail = RuntimeDetail()
        _try("calls of cells", self._install_steps, steps)
        marks = options.data_process or steps.light
        self._data = MindData(options.sampling_interval) if options.data_process and not steps.light else None
        self._loader = Loader(steps, self._data, self._inside, marks=marks)
        _try("waits for data", self._loader.install, hooks)
        _try("checkpoints", mark_checkpoints, hooks, steps, self._inside)
        _try("compilations", mark_compilations, hooks, steps, self._inside)
        _try("collectives", mark_collectives, hooks, steps, self._inside)
        if self._data is not None:
            _try("the input pipeline", self._data.install, hooks)
        _try("groups", identity.watch_groups, hooks, steps)
        hooks.apply()

    def detach(self) -> None:
        if self._train is not None:
            self._train.remove()
        if self._data is not None:
            _try("the input pipeline", self._data.remove)
        self._hooks.undo()

    def started(self, directory: Path) -> None:
        """Start observing the input pipeline, and the runtime if requested."""
        if self._data is not None:
            _try("the input pipeline", self._data.start, directory)
        if self._detail is not None:
            _try("runtime detail", self._detail.start)

    def stopped(self, directory: Path) -> None:
        """Write what was observed."""
        if self._data is not None:
            _try("the input pipeline", self._data.stop)
        if self._detail is not None:
            _try("runtime detail", self._detail.stop, directory)

    def worker_pids(self) -> dict[int, str]:
        """Processes that load data."""
        children: Any = getattr(multiprocessing.process, "_children", ())  # active_children() would reap some
        return {
            int(child.pid): type(child).__name__.strip("_")
            for child in list(children)
            if child.pid is not None and _loads_data(child)
        }

    def in_progress(self) -> list[InProgress]:
        """What the threads of this process are in at the moment."""
        found = []
        for (kind, _), (start_ns, describe) in list(self._inside.items()):
            name, detail = (describe() if describe is not None else None) or ("", "")
            found.append(InProgress(kind, start_ns, name, detail))
        return found

    def in_data_worker(self) -> bool:
        """Whether this process does not train: it loads data for another one, or is the scheduler of `msrun`."""
        return os.environ.get("MS_ROLE") == "MS_SCHED" or _loads_data(multiprocessing.current_process())

    def _install_steps(self, steps: StepTracker) -> None:
        self._calls = CallHooks(steps, self._step_ended, self._inside)
        self._calls.install(self._hooks)
        self._train = ModelTrain(steps, self._calls)
        self._train.install(self._hooks)

    def _step_ended(self) -> None:
        if self._loader is not None:
            self._loader.epochs.step_ended()
        if self._detail is not None:
            self._detail.step_ended()


def _try(subject: str, action: Callable[..., object], *arguments: object) -> None:
    try:
        action(*arguments)
    except Exception as error:
        log.warning("Profiler: %s cannot be recorded (%s: %s)", subject, type(error).__name__, error)


def _loads_data(process: Any) -> bool:
    return type(process).__module__.startswith("mindspore.dataset")
