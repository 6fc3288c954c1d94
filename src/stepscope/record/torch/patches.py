"""Replacing functions of the framework by ours, and putting them back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_INHERITED = object()


class Patches:
    """What was replaced. `undo` puts everything back, except where somebody replaced ours in the meantime: that stays,
    and ours, which is then called by theirs, must go straight through."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, Any]] = []
        self._functions: list[tuple[Any, Any]] = []
        self._waiting: list[tuple[Any, Any]] = []

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
        for entry in reversed(self._attributes):
            _restore(*entry)
        _swap([(ours, original) for original, ours in self._functions])
        self._attributes.clear()
        self._functions.clear()


def _restore(owner: Any, name: str, before: Any, ours: Any) -> None:
    if vars(owner).get(name) is not ours:
        return
    if before is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


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
