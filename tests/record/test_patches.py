"""Patches: what of them remains, in whatever order they go, and how deep they lie on one another."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from stepscope.record.hooks import Hooks
from stepscope.record.patches import Patches, inherited

COUNT = 20


class Base:
    def call(self) -> str:
        return ""

    @staticmethod
    def fixed() -> str:
        return ""

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__


class Derived(Base):
    pass


def on(original: Callable[..., str], name: str) -> Callable[..., str]:
    @functools.wraps(original)
    def wrapper(*args: Any) -> str:
        return original(*args) + name

    return wrapper


def depth(function: Any) -> int:
    """Wrappers around a function."""
    return 1 + depth(function.__wrapped__) if hasattr(function, "__wrapped__") else 0


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Three modules; the first two have a function, the third imports it later."""
    made = [types.ModuleType(name) for name in ("home", "user", "later")]
    for module in made:
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def save() -> str:
        return ""

    made[0].save = made[1].keep = save  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_methods_go_in_any_order(order: tuple[int, ...]) -> None:
    before = dict(vars(Base)), dict(vars(Derived))
    layers = [Patches() for _ in range(3)]
    for i, patches in enumerate(layers):
        patches.put(Base, "call", on(Base.call, str(i)))
        patches.put(Derived, "call", on(Derived.call, str(i)))  # the first of them is put on one of Base
        patches.put(Base, "fixed", staticmethod(on(Base.fixed, str(i))))
    left = [0, 1, 2]
    for i in order:
        layers[i].undo()
        left.remove(i)
        names = "".join(map(str, left))
        assert Base().call() == Base.fixed() == names
        assert depth(Base.call) == depth(Base.fixed) == len(left)
        assert set(Derived().call()) == set(names)
    assert (dict(vars(Base)), dict(vars(Derived))) == before


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_functions_go_in_any_order_from_all_modules(order: tuple[int, ...], modules: list[Any]) -> None:
    home, user, later = modules
    original = home.save
    layers = [Patches() for _ in range(3)]
    for i, patches in enumerate(layers):
        patches.put_everywhere(home.save, on(home.save, str(i)))
        patches.apply()
        if i == 1:
            later.save = home.save
    assert home.save() == user.keep() == later.save() == "012"
    for i in order:
        layers[i].undo()
    assert home.save is user.keep is later.save is original


def test_an_attribute_of_a_module_goes_where_it_was_imported_since(modules: list[Any]) -> None:
    home, _, later = modules
    original, patches = home.save, Patches()
    patches.put(home, "save", on(home.save, "0"))
    later.save = home.save
    patches.undo()
    assert home.save is later.save is original


def test_what_others_put_on_top_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Base, "call", Base.call)
    patches = Patches()
    patches.put(Base, "call", on(Base.call, "0"))
    theirs = Base.call = on(Base.call, "theirs")  # type: ignore[method-assign]
    patches.undo()
    assert vars(Base)["call"] is theirs


def test_one_place_is_taken_back_before_the_others() -> None:
    patches = Patches()
    patches.put(Base, "call", on(Base.call, "0"))
    patches.put(Derived, "call", inherited(Derived, "call"))
    patches.take_back(Base, "call")
    assert Base().call() == Derived().call() == ""
    assert "call" in vars(Derived)
    patches.undo()
    assert "call" not in vars(Derived)


def test_methods_of_classes_keep_their_class() -> None:
    before = vars(Base)["of_class"]
    layers = [Hooks(), Hooks()]
    for hooks in layers:
        hooks.around(Base, "of_class", lambda args, kwargs: None, lambda token, returned: None)
    assert Base.of_class() == "Base"
    layers[0].undo()
    assert Base.of_class() == "Base"
    assert depth(Base.of_class) == 1
    layers[1].undo()
    assert vars(Base)["of_class"] is before


@pytest.mark.parametrize("place", [0, -2])
def test_many_one_after_the_other_do_not_pile_up(place: int, modules: list[Any]) -> None:
    """Each is there before the last one goes, as with `profiler = Profiler()` in a loop."""
    home = modules[0]
    originals = Base.call, home.save

    def put() -> Hooks:
        hooks = Hooks()
        hooks.around(Base, "call", lambda args, kwargs: 1, lambda token, returned: None)
        hooks.around_everywhere(home.save, lambda args, kwargs: 1, lambda token, returned: None)
        hooks.apply()
        return hooks

    kept = [put(), put()]
    for _ in range(COUNT):
        kept.append(put())
        kept.pop(place).undo()
        assert depth(Base.call) == depth(home.save) == 2
    for hooks in kept:
        hooks.undo()
    assert (Base.call, home.save) == originals
