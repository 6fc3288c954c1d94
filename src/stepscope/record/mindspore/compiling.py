"""The graph compiler: a hook on its entry point, which runs when a compiled function is first called."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Hooks
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import COMPILE

_EXECUTORS = ("GraphExecutor_", "JitExecutor_")
"""Compilers of graph mode, and of `ms.jit` in later releases."""


class GraphCompileHooks:
    """Marks each compilation of a graph; calls of compiled graphs do not pass here."""

    def __init__(self, steps: StepTracker) -> None:
        self._steps = steps

    def install(self, hooks: Hooks) -> None:
        """Install the hook."""
        from mindspore import _c_expression

        for name in _EXECUTORS:
            executor = getattr(_c_expression, name, None)
            if "compile" in vars(executor or object):
                hooks.around(executor, "compile", self._enter, self._leave)

    def _enter(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[str, int] | None:
        start_ns = perf_counter_ns()
        if not self._steps.active:
            return None
        compiled = args[1] if len(args) > 1 else None
        return getattr(compiled, "__qualname__", type(compiled).__name__), start_ns

    def _leave(self, token: tuple[str, int], returned: bool) -> None:
        name, start_ns = token
        if returned:
            self._steps.mark(COMPILE, name, start_ns, perf_counter_ns())
