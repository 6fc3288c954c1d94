"""Backward passes and checkpoints, wrapped in every module that imports them, and compilations by `torch.compile`."""

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
from stepscope.record.torch.hook import Hook, marked
from stepscope.recording_format.marks import BACKWARD, CHECKPOINT, COMPILE

_SAVERS = (
    ("torch", "save", "f"),
    ("torch.distributed.checkpoint", "save", "checkpoint_id"),
    ("torch.distributed.checkpoint", "async_save", "checkpoint_id"),
)
"""Module and name of the functions that save, and their parameter for the path."""
_DYNAMO = "torch._dynamo.callback"


class BackwardHooks(Hook):
    """Marks backward passes, including `Tensor.backward`."""

    subject = "backward passes"
    kind = BACKWARD
    alone = True

    def __init__(self, steps: StepTracker, patches: Patches, over: Callable[[], None] | None = None) -> None:
        super().__init__(steps, patches, over)
        if steps.light:
            self.around = self._around

    def attach(self) -> None:
        """Wrap it."""
        from torch import autograd

        wrapper = marked(autograd.backward, self, BACKWARD, lambda args, kwargs: ("", ""))  # noqa: ARG005
        self.patches.put_everywhere(autograd.backward, wrapper)

    def _around(self, args: tuple[Any, ...], _: dict[str, Any]) -> Callable[[], None] | None:
        try:
            return self.steps.backward_begins(args[0] if args else None)
        except Exception as error:
            self.failed(error)
            return None


class CheckpointHooks(Hook):
    """Marks checkpoints."""

    subject = "checkpoints"
    kind = CHECKPOINT

    def __init__(self, steps: StepTracker, patches: Patches) -> None:
        super().__init__(steps, patches)
        self._wrapped: set[str] = set()

    def attach(self) -> None:
        """Wrap the saving functions of imported modules; call again for modules imported since."""
        for module, name, where in _SAVERS:
            title = f"{module}.{name}"
            original = getattr(sys.modules.get(module), name, None)
            if original is not None and title not in self._wrapped:
                self._wrapped.add(title)
                describe = functools.partial(_saved, title, where)
                self.patches.put_everywhere(original, marked(original, self, CHECKPOINT, describe))


def _saved(title: str, where: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """The saving function, and the path if known: its parameter `where`, in `torch.save` also the second in order."""
    place = kwargs.get(where)
    if place is None and where == "f" and len(args) > 1:
        place = args[1]
    name = place if isinstance(place, (str, bytes)) or hasattr(place, "__fspath__") else getattr(place, "name", "")
    return title, str(name)


class CompileHooks(Hook):
    """Marks each compilation of torch.compile, through the compiler's own callbacks: when a function is first called,
    which takes longer than many steps.

    The compiler takes a second to import, so nothing is registered until the script uses it.
    """

    subject = "compilations"

    def __init__(self, steps: StepTracker, patches: Patches) -> None:
        super().__init__(steps, patches)
        self._began_ns: dict[int, int] = {}
        self._remove: list[Callable[[], None]] = []

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

        self.patches.put(torch, "compile", compile)

    def detach(self) -> None:
        """Remove the callbacks."""
        super().detach()
        removers, self._remove = self._remove, []
        for remove in removers:
            with contextlib.suppress(ValueError):  # the script has cleared the list
                remove()

    def _register(self) -> bool:
        """Register for the start and end of compilations; return whether the compiler is imported."""
        callbacks = getattr(sys.modules.get(_DYNAMO), "callback_handler", None)
        if callbacks is None or self._remove or self.off:
            return callbacks is not None
        try:
            callbacks.register_start_callback(self._begins)
            callbacks.register_end_callback(self._ends)
        except Exception as error:
            self.failed(error)
            return True
        self._remove = [
            functools.partial(callbacks.remove_start_callback, self._begins),
            functools.partial(callbacks.remove_end_callback, self._ends),
        ]
        return True

    def _begins(self, *_: Any) -> None:
        if not self.off and COMPILE in self.steps.wanted:
            self._began_ns[get_ident()] = self.begins(COMPILE)

    def _ends(self, *_: Any) -> None:
        began_ns = self._began_ns.pop(get_ident(), None)
        if began_ns is not None and not self.off:
            self.report(COMPILE, lambda args, kwargs: ("torch.compile", ""), (), {}, began_ns, perf_counter_ns())  # noqa: ARG005
