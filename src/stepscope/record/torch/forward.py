"""Forward passes: calls of the outermost modules.

Hooks on modules would be saved with the model and take every module off its fast path. Instead all calls of modules
are watched during the first steps, to see which classes are called outermost; from then on only calls of those
classes pass through a wrapper.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stepscope.record.steps import Steps
from stepscope.record.torch.hook import Hook, asks_compiler
from stepscope.record.torch.patches import Patches

WATCHED_STEPS = 2
"""All modules are watched until this many steps have ended; the first may be cut short by a warm-up."""


class ForwardHooks:
    """Marks the forward passes of outermost modules.

    Args:
        steps: Takes the marks.
        patches: Puts the wrappers in place.
    """

    def __init__(self, steps: Steps, patches: Patches) -> None:
        self._steps = steps
        self._hook = Hook(steps, "forward passes")
        self._patches = patches
        self._roots: set[type] = set()
        self._left = 0
        self._compiling = asks_compiler()

    def attach(self) -> None:
        """Begin to watch all modules."""
        from torch.nn import Module

        self._left = WATCHED_STEPS
        self._patches.put(Module, "__call__", self._wrapped(vars(Module)["__call__"], self._roots.add))

    def detach(self) -> None:
        """Wrappers that cannot be taken away go straight through from now on."""
        self._hook.off = True

    def step_ended(self) -> None:
        """After the first steps, watch only the classes that were called outermost."""
        if not self._left:
            return
        self._left -= 1
        if self._left or self._hook.off:
            return
        from torch.nn import Module

        self._patches.take_back(Module, "__call__")
        for root in self._roots:
            own = vars(root).get("__call__")
            call = own if own is not None else _inherited_call(root)
            self._patches.put(root, "__call__", self._wrapped(call, None))

    def _wrapped(self, call: Callable[..., Any], seen: Callable[[type], None] | None) -> Callable[..., Any]:
        """A `__call__` that marks outermost calls, and tells `seen` their class."""
        hook, steps, compiling = self._hook, self._steps, self._compiling

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - its name in tracebacks
            if compiling() or hook.inside or hook.off or not (steps.active or seen):
                return call(self, *args, **kwargs)
            hook.inside = True
            start_ns = perf_counter_ns()
            try:
                result = call(self, *args, **kwargs)
            finally:
                hook.inside = False
            try:
                steps.mark("forward", type(self).__name__, start_ns, perf_counter_ns())
                if seen is not None:
                    seen(type(self))
            except Exception as error:
                hook.failed(error)
            return result

        return __call__


def _inherited_call(root: type) -> Callable[..., Any]:
    """`__call__` of the classes above `root`, looked up at each call: others, such as torch.fx, replace it too."""
    above = next(cls for cls in root.__mro__[1:] if "__call__" in vars(cls))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return above.__call__(self, *args, **kwargs)

    return call
