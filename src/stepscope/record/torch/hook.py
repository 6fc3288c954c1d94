"""Shared by all hooks: they stay out of the way, mark only the outermost call, and switch off if they fail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

from stepscope.record.backend import InProgress
from stepscope.record.hooks import Switch
from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import MarkKind

Describe = Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, str]]
"""Maps the arguments of a call to the mark's name and detail."""
Entered = tuple[int, "Describe | None", "tuple[Any, ...]", "dict[str, Any]"]
"""A call in progress: its start, and what describes it, if anything does."""


class Hook(Switch):
    """The base of all hooks: where they report to, and whether they still work.

    Args:
        steps: Receives the marks.
        patches: Installs the wrappers.
        over: Called after a mark.
    """

    kind: MarkKind | None = None
    """Of its marks."""
    around: Callable[[tuple[Any, ...], dict[str, Any]], Callable[[], None] | None] | None = None
    """Called with the arguments of a call that will be marked; what it returns is called at the end of the call."""
    alone = False
    """Of concurrent calls in two threads, mark only the first, since it caused the other."""

    def __init__(self, steps: StepTracker, patches: Patches, over: Callable[[], None] | None = None) -> None:
        super().__init__(self.subject)
        self.steps = steps
        self.patches = patches
        self.over = over
        self.inside: dict[int, Entered] = {}
        """Threads inside a marked call; calls nested there are not marked."""

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickles a class of the user together with its wrapper, as cloudpickle does, gets one that goes straight
        through, also where stepscope is not installed."""
        return SimpleNamespace, (), {"off": True, "inside": {}, "alone": False}

    def attach(self) -> None:
        """Install the hooks."""
        raise NotImplementedError

    def detach(self) -> None:
        """Wrappers that cannot be removed go straight through from now on."""
        self.off = True

    def begins(self, kind: MarkKind) -> int:
        """A call that will be marked begins; if it starts a recording, that must be active from here on. On hot paths,
        only if the tracker `awaits_activity`.

        Returns:
            Its start (`time.perf_counter_ns`).
        """
        try:
            self.steps.activity(perf_counter_ns(), kind)
        except Exception as error:
            self.failed(error)
        return perf_counter_ns()

    def in_progress(self) -> list[InProgress]:
        """The calls that have begun and not ended. May be called from any thread."""
        found = []
        for start_ns, describe, args, kwargs in list(self.inside.values()):
            name, detail = ("", "") if describe is None else describe(args, kwargs)
            if self.kind is not None:
                found.append(InProgress(self.kind, start_ns, name, detail))
        return found

    def report(self, kind: MarkKind, describe: Describe, args: Any, kwargs: Any, start_ns: int, end_ns: int) -> None:
        """Mark a call that is over."""
        try:
            name, detail = describe(args, kwargs)
            self.steps.mark(kind, name, start_ns, end_ns, detail)
            if self.over is not None:
                self.over()
        except Exception as error:
            self.failed(error)


def marked(original: Callable[..., Any], hook: Hook, kind: MarkKind, describe: Describe) -> Callable[..., Any]:
    """Wrap `original` to mark its outermost calls. A call that raises leaves no mark.

    The check for torch.compile comes first: while tracing it is a constant, so the compiler sees only the original.
    """
    compiling, steps, around = asks_compiler(), hook.steps, hook.around

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if compiling() or hook.off or kind not in steps.wanted:
            return original(*args, **kwargs)
        thread, inside = get_ident(), hook.inside
        if thread in inside or (inside and hook.alone):
            return original(*args, **kwargs)
        start_ns, over = perf_counter_ns(), None
        inside[thread] = start_ns, describe, args, kwargs
        try:  # from here on, as a signal handler of the user may raise at any time
            if steps.awaits_activity:
                start_ns = hook.begins(kind)
            if around is not None:
                over = around(args, kwargs)
            result = original(*args, **kwargs)
        finally:
            inside.pop(thread, None)
            if over is not None:
                over()
        hook.report(kind, describe, args, kwargs, start_ns, perf_counter_ns())
        return result

    return wrapper


def asks_compiler() -> Callable[[], bool]:
    """The framework's function that reports whether torch.compile is tracing; the cheapest one available."""
    import torch

    compiler = getattr(torch, "compiler", None)
    known = (getattr(compiler, name, None) for name in ("is_dynamo_compiling", "is_compiling"))
    return next(filter(None, known), _never)


def _never() -> bool:
    return False
