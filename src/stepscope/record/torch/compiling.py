"""`torch.compile`, which compiles a function when it is first called; this takes longer than many steps."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch.hook import Hook

_DYNAMO = "torch._dynamo.callback"


class CompileHooks:
    """Marks each compilation of torch.compile, through the compiler's own callbacks.

    The compiler takes a second to import, so nothing is registered until the script uses it.

    Args:
        steps: Receives the marks.
        patches: Installs the wrapper that detects the use of `torch.compile`.
    """

    def __init__(self, steps: StepTracker, patches: Patches) -> None:
        self._steps = steps
        self._patches = patches
        self._hook = Hook(steps, "compilations")
        self._began_ns: dict[int, int] = {}
        self._leave: list[Callable[[], None]] = []

    def attach(self) -> None:
        """Register now if the compiler is imported, else when it is first used."""
        import torch

        if self._register() or not hasattr(torch, "compile"):
            return
        original, register = torch.compile, self._register

        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in tracebacks
            result = original(*args, **kwargs)
            register()
            return result

        self._patches.put(torch, "compile", compile)

    def detach(self) -> None:
        """Remove the callbacks."""
        self._hook.off = True
        leave, self._leave = self._leave, []
        for remove in leave:
            remove()

    def _register(self) -> bool:
        """Register for the start and end of compilations; return whether the compiler is imported."""
        callbacks = getattr(sys.modules.get(_DYNAMO), "callback_handler", None)
        if callbacks is None or self._leave or self._hook.off:
            return callbacks is not None
        try:
            callbacks.register_start_callback(self._begins)
            callbacks.register_end_callback(self._ends)
        except Exception as error:
            self._hook.failed(error)
            return True
        self._leave = [
            functools.partial(_quietly, callbacks.remove_start_callback, self._begins),
            functools.partial(_quietly, callbacks.remove_end_callback, self._ends),
        ]
        return True

    def _begins(self, *_: Any) -> None:
        if not self._hook.off and self._steps.active:
            self._began_ns[get_ident()] = self._hook.begins()

    def _ends(self, *_: Any) -> None:
        began_ns = self._began_ns.pop(get_ident(), None)
        if began_ns is not None and not self._hook.off:
            self._hook.report("compile", _name, (), {}, began_ns, perf_counter_ns())


def _name(args: Any, kwargs: Any) -> tuple[str, str]:  # noqa: ARG001 - signature of `Describe`
    return "torch.compile", ""


def _quietly(remove: Callable[[Any], None], callback: Any) -> None:
    with contextlib.suppress(ValueError):  # the script has cleared the list
        remove(callback)
