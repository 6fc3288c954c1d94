"""Replacing functions of a framework with wrappers, and restoring them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, ModuleType
from typing import Any

_INHERITED = object()
_ALL: weakref.WeakSet[Patches] = weakref.WeakSet()


class Patches:
    """Replaced functions and attributes. `undo` restores them, also if several `Patches` are undone in any order: a
    wrapper put on top of ours then calls what ours called. If other code has wrapped ours, ours stays in place and must
    go straight through.

    A wrapper holds what it calls in its closure.
    """

    def __init__(self) -> None:
        self._attributes: list[_Patch] = []
        self._functions: list[_Patch] = []
        self._waiting: list[_Patch] = []
        _ALL.add(self)

    def put(self, owner: Any, name: str, ours: Any) -> None:
        """Replace an attribute of a class or module."""
        self._attributes.append(_Patch(vars(owner).get(name, _INHERITED), ours, owner, name))
        setattr(owner, name, ours)

    def take_back(self, owner: Any, name: str) -> None:
        """Restore one attribute now."""
        gone = [entry for entry in self._attributes if entry.owner is owner and entry.name == name]
        self._attributes = [entry for entry in self._attributes if entry not in gone]
        _restore(gone)

    def put_everywhere(self, original: Callable[..., Any], ours: Callable[..., Any]) -> None:
        """Replace a function in every loaded module, under any name; takes effect with `apply`."""
        self._waiting.append(_Patch(original, ours))

    def apply(self) -> None:
        """Replace all functions given to `put_everywhere`, in one search through all modules, which takes some
        milliseconds."""
        _swap([(entry.before, entry.ours) for entry in self._waiting])
        self._functions += self._waiting
        self._waiting = []

    def undo(self) -> None:
        """Restore everything, also in modules loaded since."""
        attributes, self._attributes = self._attributes, []
        functions, self._functions, self._waiting = self._functions, [], []
        _restore(attributes)
        _swap([(entry.ours, entry.before) for entry in functions])
        _unlink(functions)

    def _relink(self, gone: _Gone) -> None:
        """Make the wrappers of this object call what was below the removed ones."""
        for entry in (*self._attributes, *self._functions, *self._waiting):
            while (below := _found(entry.before, gone)) is not None:
                entry.before = below.before
            _relink(entry.called, gone)


@dataclass(eq=False, slots=True)
class _Patch:
    """One replacement: an attribute of `owner`, or a function everywhere (`owner` is None)."""

    before: Any
    ours: Any
    owner: Any = None
    name: str = ""

    @property
    def called(self) -> Any:
        """The wrapper as callers get it from `owner`."""
        return _taken(self.owner, self.ours)

    @property
    def below(self) -> Any:
        """What callers should call instead."""
        return inherited(self.owner, self.name) if self.before is _INHERITED else _taken(self.owner, self.before)


_Gone = dict[int, tuple[Any, _Patch]]
"""Removed wrappers by their ids."""


def inherited(owner: type, name: str) -> Callable[..., Any]:
    """A method of the base classes of `owner`, looked up at each call, since others may replace it too."""
    above = next(cls for cls in owner.__mro__[1:] if name in vars(cls))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(above, name)(self, *args, **kwargs)

    return call


def _taken(owner: Any, value: Any) -> Any:
    """An entry of a class as attribute access returns it, e.g. the function of a static method."""
    return value.__get__(None, owner) if isinstance(owner, type) and hasattr(value, "__get__") else value


def _restore(entries: list[_Patch]) -> None:
    """Restore attributes, last first, and those of modules also in other modules that imported them."""
    for entry in reversed(entries):
        if vars(entry.owner).get(entry.name) is not entry.ours:
            continue
        if entry.before is _INHERITED:
            delattr(entry.owner, entry.name)
        else:
            setattr(entry.owner, entry.name, entry.before)
    _swap([(entry.ours, entry.before) for entry in entries if isinstance(entry.owner, ModuleType)])
    _unlink(entries)


def _unlink(entries: list[_Patch]) -> None:
    """Remove wrappers from below others that wrap them."""
    gone: _Gone = {}
    for entry in entries:
        for ours in (entry.ours, entry.called):
            gone[id(ours)] = ours, entry
    for patches in list(_ALL):
        patches._relink(gone)


def _relink(wrapper: Any, gone: _Gone) -> None:
    """Make a wrapper call what is below the removed ones, by editing its closure."""
    for cell in getattr(wrapper, "__closure__", None) or ():
        while isinstance(cell, CellType) and (entry := _found(cell.cell_contents, gone)) is not None:
            cell.cell_contents = entry.below
    while (entry := _found(getattr(wrapper, "__wrapped__", None), gone)) is not None:
        wrapper.__wrapped__ = entry.below


def _found(value: Any, gone: _Gone) -> _Patch | None:
    ours, entry = gone.get(id(value), (None, None))
    return entry if ours is value else None


def _swap(pairs: list[tuple[Any, Any]]) -> None:
    """Replace the first of each pair with the second in all loaded modules."""
    if not pairs:
        return
    new = {id(old): (old, replacement) for old, replacement in pairs}
    for names in _namespaces():
        if new.keys().isdisjoint(map(id, list(names.values()))):
            continue
        for name, value in list(names.items()):
            found = new.get(id(value))
            if found is not None and found[0] is value:
                names[name] = found[1]


def _namespaces() -> Iterator[dict[str, Any]]:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            yield vars(module)
