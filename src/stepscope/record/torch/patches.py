"""Replacing functions of the framework by ours, and putting them back."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import CellType, ModuleType
from typing import Any

_INHERITED = object()
_ALL: weakref.WeakSet[Patches] = weakref.WeakSet()


class Patches:
    """What was replaced. `undo` puts everything back, in whatever order several are undone: where another of these has
    replaced ours in the meantime, its wrapper calls from then on what ours called. Only where somebody else replaced
    ours, that stays, and ours, which is then called by theirs, must go straight through."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, Any]] = []
        self._functions: list[tuple[Any, Any]] = []
        self._waiting: list[tuple[Any, Any]] = []
        _ALL.add(self)

    def put(self, owner: Any, name: str, ours: Any) -> None:
        """Replace an attribute of a class or module."""
        self._attributes.append((owner, name, vars(owner).get(name, _INHERITED), ours))
        setattr(owner, name, ours)

    def take_back(self, owner: Any, name: str) -> None:
        """Put one attribute back now."""
        for entry in [e for e in self._attributes if e[0] is owner and e[1] == name]:
            self._attributes.remove(entry)
            _restore(*entry)

    def put_everywhere(self, pairs: list[tuple[Callable[..., Any], Callable[..., Any]]]) -> None:
        """Have functions replaced in every loaded module that has them, under whatever name, by `apply`.

        Args:
            pairs: Each function and its replacement.
        """
        self._waiting += pairs

    def apply(self) -> None:
        """Replace what `put_everywhere` was told. Looking through all modules takes some milliseconds, so this is
        done once for all."""
        _swap(self._waiting)
        self._functions += self._waiting
        self._waiting = []

    def undo(self) -> None:
        """Put everything back, also in modules that were loaded since."""
        attributes, self._attributes = self._attributes, []
        functions, self._functions = self._functions, []
        for owner, name, before, ours in reversed(attributes):
            _restore(owner, name, before, ours)
        _swap([(ours, original) for original, ours in functions])
        for original, ours in functions:
            _unlink(ours, original, original)

    def _replaced(self, ours: Any, before: Any, call: Callable[..., Any]) -> None:
        """`ours`, of another, goes: what it replaced is what the wrappers here replace and call."""
        for i, (owner, name, replaced, wrapper) in enumerate(self._attributes):
            if replaced is ours:
                self._attributes[i] = (owner, name, before, wrapper)
                _relink(wrapper, ours, call)
        for pairs in (self._functions, self._waiting):
            for i, (replaced, wrapper) in enumerate(pairs):
                if replaced is ours:
                    pairs[i] = (before, wrapper)
                    _relink(wrapper, ours, call)


def inherited(owner: type, name: str) -> Callable[..., Any]:
    """A method of the classes above `owner`, looked up at each call: others replace it too."""
    above = next(cls for cls in owner.__mro__[1:] if name in vars(cls))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(above, name)(self, *args, **kwargs)

    return call


def _restore(owner: Any, name: str, before: Any, ours: Any) -> None:
    if vars(owner).get(name) is not ours:
        _unlink(ours, before, inherited(owner, name) if before is _INHERITED else before)
    elif before is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _unlink(ours: Any, before: Any, call: Callable[..., Any]) -> None:
    """Take a wrapper out from under those that were put on it."""
    for patches in list(_ALL):
        patches._replaced(ours, before, call)


def _relink(wrapper: Any, old: Any, new: Any) -> None:
    """Have a wrapper call another function, which it knows by its closure."""
    for cell in wrapper.__closure__ or ():
        if isinstance(cell, CellType) and cell.cell_contents is old:
            cell.cell_contents = new
    if getattr(wrapper, "__wrapped__", None) is old:
        wrapper.__wrapped__ = new


def _swap(pairs: list[tuple[Any, Any]]) -> None:
    """Replace the first of each pair by the second in all loaded modules."""
    if not pairs:
        return
    new = {id(old): (old, replacement) for old, replacement in pairs}
    for names in _namespaces():
        for name, value in list(names.items()):
            found = new.get(id(value))
            if found is not None and found[0] is value:
                names[name] = found[1]


def _namespaces() -> Iterator[dict[str, Any]]:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            yield vars(module)
