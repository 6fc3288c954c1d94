"""Shapes and values of inputs as sources write them: JSON, or `2,3;3,5`."""

from __future__ import annotations

import json
from typing import Any

Shape = list[int]
Shapes = list[Shape]


def tensors(text: str | None) -> Shapes:
    """Shapes by position; empty for inputs that are not tensors. An empty list if the text is unreadable.

    Examples:
        >>> tensors("[[2, 3], [3, 5], []]"), tensors("2,3;3,5")
        ([[2, 3], [3, 5], []], [[2, 3], [3, 5]])
    """
    if not text:
        return []
    found = read_json(text)
    if found is None or isinstance(found, str):  # a text in quotes
        return _plain(text)
    if not isinstance(found, list):
        return []
    return [one if isinstance(one, list) and all(type(size) is int for size in one) else [] for one in found]


def _plain(text: str) -> Shapes:
    """As the Ascend profiler writes them, sometimes in quotes."""
    try:
        return [[int(size) for size in one.split(",") if size] for one in text.strip('"').split(";")]
    except ValueError:
        return []


def values(text: str | None) -> list[Any]:
    """Values by position, each a number, a Boolean or a list of them; None if it is a tensor or unreadable.

    Examples:
        >>> values('["", "[2, 2]", "False", "[True, False]"]')
        [None, [2, 2], False, [True, False]]
    """
    found = read_json(text) if text else None
    return [_value(one) for one in found] if isinstance(found, list) else []


def _value(one: Any) -> Any:
    return read_json(one.replace("True", "true").replace("False", "false")) if isinstance(one, str) else None


def read_json(text: str) -> Any:
    """The parsed JSON; None if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
