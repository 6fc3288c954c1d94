"""Hooks: around what, in which order, and what of them remains."""

from __future__ import annotations

import logging
import sys
import types
from typing import Any

import pytest

from stepscope.record.hooks import Hooks


class Base:
    def call(self, value: int) -> int:
        if value < 0:
            raise ValueError("below zero")
        return value + 1


class Derived(Base):
    pass


def entered(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[1]


def test_a_hook_sees_the_call_and_whether_it_returned() -> None:
    hooks, seen = Hooks(), []
    hooks.around(Base, "call", entered, lambda token, returned: seen.append((token, returned)))

    assert Base().call(1) == 2
    with pytest.raises(ValueError, match="below zero"):
        Base().call(-1)
    hooks.undo()
    Base().call(5)

    assert seen == [(1, True), (-1, False)]


def test_what_was_inherited_is_inherited_again() -> None:
    hooks = Hooks()
    hooks.around(Derived, "call", entered, lambda token, returned: None)

    hooks.undo()

    assert "call" not in vars(Derived)


def test_a_hook_that_fails_is_told_once_and_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> Any:
        raise KeyError("mine")

    hooks = Hooks()
    hooks.around(Base, "call", fails, lambda token, returned: None)
    hooks.around(Derived, "call", entered, fails)

    with caplog.at_level(logging.WARNING, "stepscope"):
        results = [Base().call(1), Base().call(1), Derived().call(1), Derived().call(1)]
    hooks.undo()

    assert results == [2, 2, 2, 2]
    assert sum("are no longer recorded" in record.message for record in caplog.records) == 2


def test_a_function_is_hooked_wherever_it_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    home, user, later = (types.ModuleType(name) for name in ("home", "user", "later"))
    for module in (home, user, later):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def save(value: int) -> int:
        return value

    home.save = user.save = save  # type: ignore[attr-defined]
    hooks, seen = Hooks(), []
    hooks.around_everywhere(save, lambda args, kwargs: args[0], lambda token, returned: seen.append(token))
    hooks.apply()
    later.save = home.save  # type: ignore[attr-defined]

    for number, module in enumerate((home, user, later)):
        module.save(number)
    hooks.undo()

    assert seen == [0, 1, 2]
    assert home.save is user.save is later.save is save


def test_what_others_put_on_top_stays_and_the_hook_below_is_silent() -> None:
    hooks, seen = Hooks(), []
    original = Base.call
    hooks.around(Base, "call", entered, lambda token, returned: seen.append(token))
    below = Base.call

    def on_top(self: Base, value: int) -> int:
        return below(self, value) * 10

    Base.call = on_top  # type: ignore[method-assign]
    hooks.undo()
    result = Base().call(1)
    Base.call = original  # type: ignore[method-assign]

    assert result == 20
    assert seen == []
