"""A signal handler of the user may raise anywhere, also within a hook."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.record.hooks import Hooks
from stepscope.record.mindspore.calls import CallHooks, _Nesting, _Phase
from stepscope.record.mindspore.phases import Inside, marked
from stepscope.recording_format.marks import CHECKPOINT, FORWARD, MarkKind


class Steps:
    """Notes marks, and is interrupted by a signal when something begins."""

    light = False
    wanted = frozenset({FORWARD, CHECKPOINT})

    def __init__(self) -> None:
        self.interrupts = False
        self.marks: list[MarkKind] = []

    def activity(self, start_ns: int, kind: MarkKind) -> None:
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt

    def enters(self, kind: MarkKind, start_ns: int) -> None:
        self.activity(start_ns, kind)

    def mark(self, kind: MarkKind, *_: Any) -> None:
        self.marks.append(kind)


def of_cells(steps: Any, inside: Inside) -> tuple[Any, Any]:
    hooks = CallHooks.__new__(CallHooks)  # without MindSpore
    hooks._steps, hooks._inside, hooks._nesting, hooks.model_trains = steps, inside, _Nesting(), 0
    return hooks._entering(lambda _: _Phase(FORWARD, "Net")), hooks._leave


def of_checkpoints(steps: Any, inside: Inside) -> tuple[Any, Any]:
    return marked(steps, CHECKPOINT, lambda *_: ("save", ""), inside)


@pytest.mark.parametrize(("hook", "kind"), [(of_cells, FORWARD), (of_checkpoints, CHECKPOINT)])
def test_what_follows_a_call_that_was_interrupted_within_a_hook_is_recorded(
    hook: Callable[..., tuple[Any, Any]], kind: MarkKind
) -> None:
    steps, inside = Steps(), Inside()
    owner = SimpleNamespace(call=lambda _: 7)
    hooks = Hooks()
    hooks.around(owner, "call", *hook(steps, inside))

    steps.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        owner.call("x")
    assert (steps.marks, inside) == ([], {})
    assert owner.call("x") == 7

    assert (steps.marks, inside) == ([kind], {})
