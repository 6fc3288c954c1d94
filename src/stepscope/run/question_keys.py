"""What tells questions apart: functions and options as parts of a key."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from stepscope.analysis.parameters import identity


def values(options: Mapping[str, Any]) -> Hashable:
    """Equal for equal options."""
    return tuple((name, identity(value)) for name, value in sorted(options.items()))


def hashable(function: Callable[..., Any]) -> Hashable:
    """Equal only for the same function, even if it is a callable object with its own equality or without a hash."""
    plain = isinstance(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return function if plain else _Same(function)


class _Same:
    """Equal only for the same object, which it keeps alive."""

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)
