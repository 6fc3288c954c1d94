"""Which of several callers ends a step."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from stepscope.record.mindspore.calls import CallHooks, StepOwner


class Caller:
    pass


def steps(calls: list[Caller]) -> list[bool]:
    owner = StepOwner()
    return [owner.ends_step(caller) for caller in calls]


def test_one_optimizer_ends_every_step() -> None:
    one = Caller()

    assert steps([one] * 4) == [True] * 4


def test_two_optimizers_of_one_loop_end_a_step_once() -> None:
    generator, discriminator = Caller(), Caller()

    assert steps([discriminator, generator] * 3) == [True, False] * 3


def test_training_that_moves_on_to_another_optimizer_is_followed_at_once() -> None:
    first, second = Caller(), Caller()

    assert steps([first] * 3 + [second] * 3) == [True] * 6


def test_of_two_known_optimizers_the_one_that_goes_on_alone_takes_over() -> None:
    one, other = Caller(), Caller()

    assert steps([one, other, one, other, other, other]) == [True, False, True, False, True, True]


def test_an_optimizer_that_is_gone_owns_nothing() -> None:
    owner, one, other = StepOwner(), Caller(), Caller()
    assert owner.ends_step(one)

    del one

    assert owner.ends_step(other)


def test_a_version_without_an_executor_keeps_the_hooks_before_it() -> None:
    hooked: list[str] = []
    hooks = SimpleNamespace(around=lambda owner, name, *_: hooked.append(f"{owner.__name__}.{name}"))
    calls = CallHooks.__new__(CallHooks)  # without MindSpore
    calls._kinds, calls._api = SimpleNamespace(cell=Caller), SimpleNamespace()

    with pytest.raises(AttributeError, match="_JitExecutor"):
        calls.install(hooks)

    assert hooked == ["Caller.__call__"]
