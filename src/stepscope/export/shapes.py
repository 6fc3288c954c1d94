"""Shapes of operators' inputs, as tables hold them, in the spellings of the classic files."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

NO_SHAPE = "NoShape"
_NO_TENSOR = ("", "Scalar", "ScalarList")


@lru_cache(maxsize=65536)
def parsed(text: str | None) -> tuple[Any, ...]:
    """The inputs of a shapes text, which is a JSON list: sizes, a list of sizes, or null; empty where unreadable."""
    if not text:
        return ()
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list) else ()


@lru_cache(maxsize=65536)
def launch_shapes(shapes: str | None, types: str | None) -> str:
    """The inputs as lines of launches have them.

    Examples:
        >>> launch_shapes("[[8, 3], [], []]", '["float", "Scalar", ""]')
        'input_1:[8, 3];input_2:NoShape;input_3:NoShape;'
    """
    kinds = parsed(types)
    parts = []
    for number, shape in enumerate(parsed(shapes)):
        kind = kinds[number] if number < len(kinds) else None
        nothing = shape is None or shape == NO_SHAPE or (not shape and kind in _NO_TENSOR)
        parts.append(f"input_{number + 1}:{NO_SHAPE if nothing else json.dumps(shape)};")
    return "".join(parts)
