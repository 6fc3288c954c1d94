"""Phases and steps of training loops that users write themselves: calls of cells, gradients and compiled functions."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Enter, Hooks
from stepscope.record.mindspore.code_inspection import CodeContents, FrameworkClasses, inspect_code
from stepscope.record.mindspore.identity import executors
from stepscope.record.mindspore.phases import Inside
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import BACKWARD, FORWARD, OPTIMIZER, MarkKind

_HELPERS = ("mindspore.nn.wrap.grad_reducer", "mindspore.nn.wrap.loss_scale")
"""Modules with helper cells between the phases, which are not phases themselves."""


@dataclass(frozen=True)
class _Phase:
    """The phase of an outermost call."""

    kind: MarkKind
    name: str
    stepper: Any = None
    """The optimizer that ends a step with this call, or the compiled function that contains it."""


class _Nesting(threading.local):
    """Whether this thread is inside a phase; nested calls belong to it."""

    inside = False


class StepOwner:
    """One optimizer (or compiled training function) at a time ends the steps: the first one called.

    Others called between two of its calls belong to the same step. If one is called twice in between, or a new one
    appears after the owner has ended several steps alone, training has moved on to it.
    """

    def __init__(self) -> None:
        self._owner: weakref.ref[Any] | None = None
        self._ended = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._since: weakref.WeakSet[Any] = weakref.WeakSet()

    def ends_step(self, caller: Any) -> bool:
        """Whether this call of `caller` ends a step."""
        owner = self._owner() if self._owner is not None else None
        if caller is not owner and owner is not None:
            moved_on = caller in self._since or (self._ended >= 2 and caller not in self._known)
            if not moved_on:
                self._known.add(caller)
                self._since.add(caller)
                return False
        if caller is not owner:
            self._owner, self._ended = weakref.ref(caller), 0
            self._known.add(caller)
        if self._since:
            self._since.clear()
        self._ended += 1
        return True


class CallHooks:
    """Hooks on everything that a training loop calls.

    PyNative: the outermost cell is the forward pass; cells that contain a gradient or optimizer are not marked, only
    the cells inside. Compiled (graph mode, `ms.jit`): one call is one mark; it ends a step if its code reaches an
    optimizer. `step_ended` is called at the end of each step detected here.
    """

    def __init__(self, steps: StepTracker, step_ended: Callable[[], None], inside: Inside) -> None:
        self.model_trains = 0
        """Calls of `Model.train` in progress: their callbacks report the steps."""
        self.trains_compiled = False
        """Whether a function compiled by `ms.jit` has trained."""
        self._steps = steps
        self._step_ended = step_ended
        self._nesting = _Nesting()
        self._inside = inside
        self._owner = StepOwner()
        self._reached: weakref.WeakKeyDictionary[Any, CodeContents] = weakref.WeakKeyDictionary()
        self._kinds = _kinds()
        self._api = executors()

    def install(self, hooks: Hooks) -> None:
        """Install the hooks."""
        gradient = _Phase(BACKWARD, "grad")  # one by one: a version may lack an owner, and those before it still count
        hooks.around(self._kinds.cell, "__call__", self._entering(self._of_cell), self._leave)
        hooks.around(self._api._JitExecutor, "__call__", self._entering(self._of_compiled), self._leave)
        hooks.around(type(self._api._pynative_executor), "grad", self._entering(lambda _: gradient), self._leave)

    def _entering(self, find: Callable[[Any], _Phase | None]) -> Enter:
        """Begins the phase of an outermost call, which `find` finds by the object called; None for no phase."""

        def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Phase, int] | None:
            if self._nesting.inside or (phase := find(args[0])) is None:
                return None
            try:  # a signal handler of the user may raise at any time
                self._nesting.inside = True
                start_ns = perf_counter_ns()
                self._inside[phase.kind, get_ident()] = start_ns, None
                self._steps.activity(start_ns, phase.kind)
                if self._steps.light and phase.kind is FORWARD:
                    self._steps.passes(args[0], args[1:], kwargs)
            except BaseException:
                self._end(phase.kind)
                raise
            return phase, start_ns

        return enter

    def _leave(self, token: tuple[_Phase, int], returned: bool) -> None:
        phase, start_ns = token
        self._end(phase.kind)
        if not returned:
            return
        now_ns = perf_counter_ns()
        self._steps.mark(phase.kind, phase.name, start_ns, now_ns)
        if phase.stepper is not None and not self.model_trains and self._owner.ends_step(phase.stepper):
            self._step_ended()
            self._steps.ended(now_ns)

    def _end(self, kind: MarkKind) -> None:
        self._nesting.inside = False
        self._inside.pop((kind, get_ident()), None)

    def _of_cell(self, cell: Any) -> _Phase | None:
        name = type(cell).__name__
        if isinstance(cell, self._kinds.optimizers):
            return _Phase(OPTIMIZER, name, cell)
        if type(cell).__module__ in _HELPERS or name == "Identity":
            return None
        found = self._reach(cell, cell)
        if _compiles():
            return _Phase(FORWARD, name, cell if found.optimizer else None)
        return None if found.optimizer or found.gradient else _Phase(FORWARD, name)

    def _of_compiled(self, executor: Any) -> _Phase | None:
        function, owner = executor.fn, executor.obj
        of_cell = isinstance(owner, self._kinds.cell)
        anchor = owner if of_cell else function
        bound = function if owner is None else function.__get__(owner)
        found = self._reach(anchor, bound)
        if not (found.cell or found.gradient or found.optimizer):
            return None  # one of the framework's many compiled helpers
        self.trains_compiled = self.trains_compiled or found.optimizer
        name = type(owner).__name__ if of_cell else _function_name(function)
        return _Phase(FORWARD, name, anchor if found.optimizer else None)

    def _reach(self, anchor: Any, root: Any) -> CodeContents:
        found = self._reached.get(anchor)
        if found is None:
            found = self._reached[anchor] = inspect_code(root, self._kinds)
        return found


def _kinds() -> FrameworkClasses:
    from mindspore import Tensor, nn, ops
    from mindspore._c_expression import GradOperation_
    from mindspore.experimental.optim.optimizer import Optimizer

    return FrameworkClasses(nn.Cell, (nn.Optimizer, Optimizer), GradOperation_, (Tensor, ops.Primitive))


def _compiles() -> bool:
    """Whether a cell called now runs as a compiled graph."""
    from mindspore import GRAPH_MODE, get_context

    return bool(get_context("mode") == GRAPH_MODE) and os.environ.get("MS_JIT") != "0"


def _function_name(function: Any) -> str:
    """The user's name for a compiled function; the wrapper of compiled gradients has only a generic one."""
    if function.__name__ == "after_grad":
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            if name == "fn":
                inner = cell.cell_contents
                return str(getattr(inner, "__name__", type(inner).__name__))
    return str(function.__name__)
