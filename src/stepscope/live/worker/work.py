"""How much work a forward pass is given: the number of elements in its inputs."""

from __future__ import annotations

from math import prod
from typing import Any

_MOST = 64
"""Members of a container that are looked at."""


def elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Elements of all tensors among the arguments, also one level down in lists, tuples and dictionaries."""
    total = 0
    for value in args:
        total += _of(value)
    for value in kwargs.values():
        total += _of(value)
    return total


def _of(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return _product(shape)
    if isinstance(value, (list, tuple)):
        members = value[:_MOST]
    elif isinstance(value, dict):
        members = list(value.values())[:_MOST]
    else:
        return 0
    return sum(_product(member.shape) for member in members if hasattr(member, "shape"))


def _product(shape: Any) -> int:
    """Elements of a tensor; 0 where sizes are symbols or tensors themselves. While a program is traced, to ask for
    their numbers would warn, or make what is traced valid for this size only."""
    count = prod(shape)
    return count if type(count) is int else 0
