"""Steps end when the optimizer is done: hooks of `torch.optim` that all optimizers call."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stepscope.record.backend import InProgress
from stepscope.record.torch.hook import Hook, asks_compiler
from stepscope.record.torch.phases import BackwardHooks
from stepscope.recording_format.marks import OPTIMIZER

log = logging.getLogger("stepscope")


class OptimizerHooks(Hook):
    """Marks optimizers and ends steps.

    With several optimizers, a step ends with the one seen first, until that is deleted or no longer used; then with the
    first one called twice without it. If torch.compile compiles a whole training step, no hook is called: the user must
    call `step()`. An optimizer that runs within the backward pass (in parameter hooks, perhaps on an autograd thread)
    ends the step when that pass is over.

    Args:
        backward: The backward passes; `backward_over` is called when one is over.
        after_step: Called when a step has ended.
    """

    subject = "steps and optimizers"

    def __init__(self, backward: BackwardHooks, after_step: Callable[[], None]) -> None:
        super().__init__(backward.steps, backward.patches)
        self._in_backward = backward.inside
        self.ends_later = False
        self._after_step = after_step
        self._first: weakref.ref[Any] = weakref.ref(self)  # replaced by the first optimizer seen
        self._first_seen = False
        self._others: list[int] = []  # used since the first one
        self._most_others = 0
        self._began_ns: dict[int, int] = {}
        self._handles: list[Any] = []
        self._compiling: Callable[[], bool] = asks_compiler()

    def attach(self) -> None:
        """Register with all current and future optimizers."""
        from torch.optim import optimizer

        if not hasattr(optimizer, "register_optimizer_step_post_hook"):  # before torch 2.1
            log.warning("Profiler: this version of torch does not report the end of a step; call Profiler.step()")
            return
        self._handles = [
            optimizer.register_optimizer_step_pre_hook(self._before),
            optimizer.register_optimizer_step_post_hook(self._after),
        ]

    def detach(self) -> None:
        """Remove the hooks."""
        super().detach()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def backward_over(self) -> None:
        """A backward pass is over."""
        if self.ends_later:
            self.ends_later = False
            self.steps.ended(perf_counter_ns())
            self._after_step()

    def in_progress(self) -> list[InProgress]:
        """Optimizers at work."""
        return [InProgress(OPTIMIZER, start_ns) for start_ns in list(self._began_ns.values())]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - the hook's form
        if self._compiling() or self.off:
            return
        if OPTIMIZER not in self.steps.wanted and self._first_seen and self._first() is not None:
            return
        try:
            if not self._first_seen or self._first() is None:
                self._first, self._first_seen = weakref.ref(optimizer), True
            if OPTIMIZER in self.steps.wanted:
                began_ns = self.begins(OPTIMIZER) if self.steps.awaits_activity else perf_counter_ns()
                self._began_ns[id(optimizer)] = began_ns
        except Exception as error:
            self.failed(error)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - the hook's form
        if self._compiling() or self.off:
            return
        try:
            now_ns = perf_counter_ns()
            began_ns = self._began_ns.pop(id(optimizer), None)
            if began_ns is not None:
                self.steps.mark(OPTIMIZER, type(optimizer).__name__, began_ns, now_ns)
            if not self._ends_step(optimizer):
                return
            if self._in_backward:
                self.ends_later = True
                return
            self.steps.ended(now_ns)
            self._after_step()
        except Exception as error:
            self.failed(error)

    def _ends_step(self, optimizer: Any) -> bool:
        """Whether steps end with this optimizer, now or from now on."""
        if self._first() is optimizer:
            if self._others:
                self._most_others = max(self._most_others, len(self._others))
                self._others.clear()
            return True
        came_round = id(optimizer) in self._others and len(self._others) >= max(self._most_others, 1)
        self._others.append(id(optimizer))
        if came_round:
            self._first, self._most_others = weakref.ref(optimizer), 0
            self._others.clear()
        return came_round
