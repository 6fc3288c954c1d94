"""How much work a forward pass is given: the number of elements in its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

_MOST = 64
"""Members of a container that are looked at."""


def elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Elements of all tensors among the arguments, also one level down in lists, tuples and dictionaries."""
    total = 0
    for value in (*args, *kwargs.values()) if kwargs else args:
        shape = getattr(value, "shape", None)
        if shape is not None:
            total += _product(shape)
        elif isinstance(value, (list, tuple)):
            total += _of(value[:_MOST])
        elif isinstance(value, dict):
            total += _of(list(value.values())[:_MOST])
    return total


def _of(members: Iterable[Any]) -> int:
    return sum(_product(member.shape) for member in members if hasattr(member, "shape"))


def _product(shape: Any) -> int:
    """Elements of a tensor; 0 where sizes are symbols or tensors themselves. While a program is traced, to ask for
    their numbers would warn, or make what is traced valid for this size only."""
    count = prod(shape)
    return count if type(count) is int else 0
