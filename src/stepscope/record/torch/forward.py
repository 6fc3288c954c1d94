"""Forward passes: calls of the outermost modules.

Module hooks would be saved with the model and take every module off its fast path. Instead, all module calls are
watched during the first steps to find the classes called outermost; from then on only their calls are wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import Any

from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch.hook import Hook, asks_compiler, marked
from stepscope.recording_format.marks import EVALUATES, FORWARD, NO_GRADIENT

_is_compiling: Callable[[], bool] | None = None
"""Whether torch.compile is tracing. A module global rather than a closure variable: torch.compile guards on closure
variables that it meets while tracing, checks them before each call, and recompiles when they are gone."""

_CALLS, _CALLS_FILE = ("_wrapped_call_impl", "_call_impl"), "torch/nn/modules/module.py"
"""Functions that call a module, and their file."""

WATCHED_STEPS = 2
"""All modules are watched until this many steps have ended; the first may be cut short by a warm-up."""

MOST_FRUITLESS_WATCHES = 3
"""How often in a row to watch all modules again after a step with a backward pass but no forward pass of a module."""


class ForwardHooks(Hook):
    """Marks the forward passes of outermost modules."""

    subject = "forward passes"
    kind = FORWARD

    def __init__(self, steps: StepTracker, patches: Patches) -> None:
        super().__init__(steps, patches, self.found)
        if steps.light:
            self.around = lambda args, kwargs: steps.passes(args[0], args[1:], kwargs)
        self._roots: set[type] = set()
        self._placed: set[type] = set()
        self._left = 0
        self._forward = False  # since the last step
        self.backward_seen = False
        """Since the last step there was a backward pass, so there was a forward pass before it."""
        self._fruitless = 0
        self._entered: list[int] = []  # threads that were inside a module already when watching began

    def attach(self) -> None:
        """Begin to watch all modules."""
        global _is_compiling  # noqa: PLW0603 - see there
        _is_compiling = asks_compiler()
        self._watch(WATCHED_STEPS)
        self._entered = _inside_modules()
        for thread in self._entered:  # the modules that it calls now are not outermost
            self.inside[thread] = perf_counter_ns(), None, (), {}

    def step_ended(self) -> None:
        """After the first steps, watch only the classes called outermost; if others are called, watch all again."""
        missed = self.backward_seen and not self._forward and FORWARD in self.steps.wanted
        if self._forward:
            self._fruitless = 0
        self._forward = self.backward_seen = False
        while self._entered:
            self.inside.pop(self._entered.pop(), None)
        if self.off:
            return
        if self._left:
            self._left -= 1
            if not self._left:
                self._place()
        elif missed and self._fruitless < MOST_FRUITLESS_WATCHES:
            self._fruitless += 1
            self._watch(1)

    def found(self) -> None:
        """A forward pass was marked."""
        self._forward = True

    @staticmethod
    def manner(module: Any) -> str:
        """See `_manner`."""
        return _manner(module)

    def _watch(self, steps: int) -> None:
        from torch.nn import Module

        self._left = steps
        self.patches.put(Module, "__call__", self._wrapped(Module, vars(Module)["__call__"], self._roots.add))

    def _place(self) -> None:
        """Watch only the classes that were called outermost."""
        from torch.nn import Module

        self.patches.take_back(Module, "__call__")
        for root in self._roots - self._placed:
            own = vars(root).get("__call__")  # e.g. modules created by torch.compile
            if own is not None:
                call = marked(own, self, FORWARD, _class_of_first)
            else:
                call = self._wrapped(next(cls for cls in root.__mro__[1:] if "__call__" in vars(cls)))
            self.patches.put(root, "__call__", call)
        self._placed |= self._roots

    def _wrapped(
        self, above: type, call: Callable[..., Any] | None = None, seen: Callable[[type], None] | None = None
    ) -> Callable[..., Any]:
        """A `__call__` that marks outermost calls and passes their class to `seen`.

        In place of `Module.__call__`, torch's tracer of Python stacks takes the module from its `self`.

        Args:
            above: The class whose `__call__` it calls, looked up each time, since others may replace it too.
            call: Called instead, if given.
            seen: Called with the class.
        """
        # cloudpickle stores classes of the user's script with this function and all that it refers to: see `__reduce__`
        hook, steps, inside = self, self.steps, self.inside
        light = steps.light

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - its name in tracebacks
            if _is_compiling():  # type: ignore[misc]
                return self._wrapped_call_impl(*args, **kwargs)
            thread = get_ident()
            if thread in inside or hook.off or not (FORWARD in steps.wanted or seen):
                return (call or above.__call__)(self, *args, **kwargs)
            start_ns = perf_counter_ns()
            inside[thread] = start_ns, None, args, kwargs
            try:  # from here on, as a signal handler of the user may raise at any time
                if steps.awaits_activity:
                    start_ns = hook.begins(FORWARD)
                if light:
                    steps.passes(self, args, kwargs)
                result = (call or above.__call__)(self, *args, **kwargs)
            finally:
                inside.pop(thread, None)
            try:
                end_ns = perf_counter_ns()
                steps.mark(FORWARD, type(self).__name__, start_ns, end_ns, "" if light else hook.manner(self))
                hook.found()
                if seen is not None:
                    seen(type(self))
            except Exception as error:
                hook.failed(error)
            return result

        return __call__


def _inside_modules() -> list[int]:
    """The threads that are inside a call of a module now."""
    found = []
    for thread, innermost in sys._current_frames().items():
        frame: FrameType | None = innermost
        while frame is not None and frame.f_code.co_name not in _CALLS:
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.endswith(_CALLS_FILE):
            found.append(thread)
    return found


def _class_of_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:  # noqa: ARG001
    return type(args[0]).__name__, _manner(args[0])


def _manner(module: Any) -> str:
    """The `detail` of a forward pass that does not train, in words; empty for one that trains."""
    import torch

    evaluates = getattr(module, "training", True) is False
    if torch.is_grad_enabled():
        return EVALUATES if evaluates else ""
    return f"{EVALUATES} {NO_GRADIENT}" if evaluates else NO_GRADIENT
