"""Checkpoints and compilations of graphs, and the marks of calls that are one phase each."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Enter, Hooks, Leave
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import CHECKPOINT, COMPILE, MarkKind

_EXECUTORS = ("GraphExecutor_", "JitExecutor_")
"""Compilers of graph mode, and of `ms.jit` in later releases."""


Inside = dict[tuple[MarkKind, int], tuple[int, "Callable[[], tuple[str, str] | None] | None"]]
"""Calls in progress by kind and thread: their start, and what describes them, if anything does."""


def marked(
    steps: StepTracker,
    kind: MarkKind,
    describe: Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, str] | None],
    inside: Inside,
) -> tuple[Enter, Leave]:
    """A hook that marks each call that returns; `describe` maps its arguments to the mark's name and detail, or to None
    for no mark."""

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        if kind not in steps.wanted:
            return None
        start_ns = perf_counter_ns()
        try:  # a signal handler of the user may raise at any time
            inside[kind, get_ident()] = start_ns, partial(describe, args, kwargs)
            steps.enters(kind, start_ns)
        except BaseException:
            inside.pop((kind, get_ident()), None)
            raise
        return args, kwargs, start_ns

    def leave(token: tuple[Any, ...], returned: bool) -> None:
        args, kwargs, start_ns = token
        now_ns = perf_counter_ns()
        inside.pop((kind, get_ident()), None)
        if returned and (described := describe(args, kwargs)) is not None:
            name, detail = described
            steps.mark(kind, name, start_ns, now_ns, detail)

    return enter, leave


def mark_checkpoints(hooks: Hooks, steps: StepTracker, inside: Inside) -> None:
    """Mark each saved checkpoint: a hook on `save_checkpoint` in every module that imports it."""
    from mindspore.train.serialization import save_checkpoint

    def describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
        path = args[1] if len(args) > 1 else kwargs.get("ckpt_file_name", "")
        return "save_checkpoint", os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""

    hooks.around_everywhere(save_checkpoint, *marked(steps, CHECKPOINT, describe, inside))


def mark_compilations(hooks: Hooks, steps: StepTracker, inside: Inside) -> None:
    """Mark each compilation of a graph: a hook on the compiler, which runs when a compiled function is first called;
    calls of compiled graphs do not pass here."""
    from mindspore import _c_expression

    def describe(args: tuple[Any, ...], _: dict[str, Any]) -> tuple[str, str]:
        compiled = args[1] if len(args) > 1 else None
        return getattr(compiled, "__qualname__", type(compiled).__name__), ""

    for name in _EXECUTORS:
        executor = getattr(_c_expression, name, None)
        if "compile" in vars(executor or object):
            hooks.around(executor, "compile", *marked(steps, COMPILE, describe, inside))
