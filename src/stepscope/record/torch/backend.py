"""The PyTorch backend: its hooks, and what they report."""

from __future__ import annotations

import os
import weakref
from typing import Any

from stepscope.record.backend import Backend, InProgress, Surroundings
from stepscope.record.environment import Identity
from stepscope.record.forks import in_child
from stepscope.record.options import Options, Target
from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch import identity
from stepscope.record.torch.clock import ClockOffset
from stepscope.record.torch.collectives import CollectiveHooks
from stepscope.record.torch.forward import ForwardHooks
from stepscope.record.torch.loader import WORKER_VARIABLE, LoaderHooks
from stepscope.record.torch.npu import NpuWindows
from stepscope.record.torch.optimizer import OptimizerHooks
from stepscope.record.torch.phases import BackwardHooks, CheckpointHooks, CompileHooks
from stepscope.record.torch.windows import TorchWindows

_TARGETS: dict[str, Target] = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu", "npu": "ascend"}
_ALL: weakref.WeakSet[TorchBackend] = weakref.WeakSet()


class TorchBackend(Backend):
    """Records PyTorch on CPU, CUDA, ROCm, and on Ascend through torch_npu."""

    def __init__(self) -> None:
        kind = identity.device_kind()
        self.target = _TARGETS[kind]
        self.counts_events = kind != "npu"
        self._patches = Patches()
        self._clock = ClockOffset()
        self._steps: StepTracker | None = None
        self._left_group = False
        _ALL.add(self)

    def identity(self) -> Identity:
        return identity.identity()

    def surroundings(self) -> Surroundings:
        return identity.surroundings(self._clock.result, left=self._left_group)

    def lacks(self, options: Options) -> dict[str, str]:
        lacking = {}
        if "profile_framework" in options.given and options.profile_framework == "memory":
            lacking["profile_framework"] = "torch has no separate host memory data; use profile_memory"
        if "sync_enable" in options.given and not options.sync_enable and self.target == "gpu":
            lacking["sync_enable"] = "the GPU times its operators itself, without delaying anything"
        if options.runtime_detail:
            lacking["runtime_detail"] = "it is a MindSpore feature"
        return lacking

    def attach(self, steps: StepTracker, options: Options) -> None:
        if self.target == "ascend":
            self.windows = NpuWindows(options)
        else:
            self.windows = windows = TorchWindows(options, self._patches, lambda: steps.number)
            if options.op_time:
                windows.attach()
        self._steps = steps
        self._is_first_step = True
        backward = BackwardHooks(steps, self._patches, self._backward_over)
        self._optimizer = OptimizerHooks(backward, self._step_ended)
        self._forward = ForwardHooks(steps, self._patches)
        self._loader = LoaderHooks(steps, self._patches, marks=options.data_process or steps.light)
        self._checkpoint = CheckpointHooks(steps, self._patches)
        self._hooks = (
            self._optimizer,
            self._forward,
            self._loader,
            self._checkpoint,
            backward,
            CollectiveHooks(steps, self._patches, self._groups_changed),
            CompileHooks(steps, self._patches),
        )
        for hook in self._hooks:
            hook.attach()
        self._patches.apply()
        if not steps.light:
            self._clock.attach()

    def detach(self) -> None:
        if self._steps is None:
            return
        self._steps = None
        for hook in self._hooks:
            hook.detach()
        self._patches.undo()
        self._clock.stop()

    def end_threads(self) -> None:
        """End the comparison of clocks."""
        self._clock.stop()

    def worker_pids(self) -> dict[int, str]:
        """Worker processes of the data loaders in use."""
        return {} if self._steps is None else self._loader.worker_pids()

    def in_progress(self) -> list[InProgress]:
        """What the threads of this process are in at the moment."""
        return [] if self._steps is None else [call for hook in self._hooks for call in hook.in_progress()]

    def device_module(self) -> Any:
        """`torch.cuda` or `torch.npu`; None on a CPU."""
        import torch

        return {"gpu": torch.cuda, "ascend": getattr(torch, "npu", None)}.get(self.target)

    def in_data_worker(self) -> bool:
        """Whether a data loader started this process."""
        from torch.utils.data import get_worker_info

        return get_worker_info() is not None or os.environ.get(WORKER_VARIABLE) is not None

    def _step_ended(self) -> None:
        self._forward.step_ended()
        if self._clock.news and self._steps is not None:
            self._clock.news = False
            self._steps.identity_changed()
        if self._is_first_step:
            self._is_first_step = False
            self._loader.epochs.step_ended()
            self._checkpoint.attach()  # modules imported since
            self._patches.apply()

    def _backward_over(self) -> None:
        self._forward.backward_seen = True
        self._optimizer.backward_over()

    def _groups_changed(self, function: str) -> None:
        if function == "init_process_group":
            if self._steps is not None and not self._steps.light:
                self._clock.attach()
        elif function == "destroy_process_group":
            self._clock.left()
            self._left_group = True
        if self._steps is not None:
            self._steps.identity_changed()

    def _forget(self) -> None:
        """Called in a forked child."""
        self._clock.forget()
        if self._steps is not None:
            self.windows.in_child()


@in_child
def _in_child() -> None:
    for backend in list(_ALL):
        backend._forget()
