"""A backend of the recorder that records operators only: the hooks in this process are those of the live worker."""

from __future__ import annotations

from stepscope.record.backend import Backend, Surroundings
from stepscope.record.environment import Identity
from stepscope.record.hooks import Hooks
from stepscope.record.options import Options
from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker


def is_torch(backend: Backend) -> bool:
    """Whether a backend is one of torch."""
    return type(backend).__module__.startswith("stepscope.record.torch")


class WindowBackend(Backend):
    """Operator windows of the framework that `base` knows, without any other hook.

    Args:
        base: Knows rank, groups and device; it may be attached, and stays as it is.
    """

    def __init__(self, base: Backend) -> None:
        self._base = base
        self.target = base.target
        self._patches = Patches()
        self._hooks = Hooks()

    def identity(self) -> Identity:
        return self._base.identity()

    def surroundings(self) -> Surroundings:
        return self._base.surroundings()

    def lacks(self, options: Options) -> dict[str, str]:
        return self._base.lacks(options)

    def attach(self, steps: StepTracker, options: Options) -> None:
        """Prepare the windows. Only torch's wrap anything: what begins and ends profilers and ranges."""
        if is_torch(self._base):
            self._attach_torch(steps, options)
        else:
            self._attach_mindspore(steps, options)

    def detach(self) -> None:
        self._patches.undo()
        self._hooks.undo()

    def gives_way(self) -> bool:
        """Whether another profiler is active in this process. Only torch's exclude each other."""
        other_is_active = getattr(self.windows, "other_is_active", None)
        return other_is_active is not None and other_is_active()

    def worker_pids(self) -> dict[int, str]:
        return self._base.worker_pids()

    def in_data_worker(self) -> bool:
        return False

    def _attach_torch(self, steps: StepTracker, options: Options) -> None:
        if self.target == "ascend":
            from stepscope.record.torch.npu import NpuWindows  # noqa: PLC0415 - imports its framework

            self.windows = NpuWindows(options)
            return
        from stepscope.record.torch.windows import TorchWindows  # noqa: PLC0415

        self.windows = windows = TorchWindows(options, self._patches, lambda: steps.number)
        windows.attach()

    def _attach_mindspore(self, steps: StepTracker, options: Options) -> None:
        if self.target == "cpu":
            from stepscope.record.mindspore.cpu_windows import CpuWindows  # noqa: PLC0415

            self.windows = windows = CpuWindows(lambda: steps.number, memory=options.profile_memory)
            windows.install(self._hooks)
            self._hooks.apply()
            return
        from stepscope.record.mindspore.device_windows import DeviceWindows  # noqa: PLC0415

        self.windows = DeviceWindows(options)
