"""Values from JSON files that others wrote: as what they should be, or unknown."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

_LARGEST = 1e18


def whole_number(value: Any) -> int | None:
    """An int that fits int64, also from its text; None for anything else."""
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value


def small_number(value: Any) -> int | None:
    """Like `whole_number`, for what must fit int32: ranks, sizes of groups."""
    number = whole_number(value)
    return number if number is not None and -(2**31) <= number < 2**31 else None


def as_index(value: object) -> int | None:
    """A rank or device index from a number or digits; None for anything else (`-1` is "none")."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if type(value) is int and 0 <= value < 2**31 else None


def as_number(value: object) -> float | None:
    """A finite figure; None for anything else."""
    if type(value) is float:  # nearly all are
        return value if isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def as_amount(value: object) -> float | None:
    """A figure that is not negative, and not above all that is measured; None for anything else."""
    number = as_number(value)
    return number if number is not None and 0 <= number < _LARGEST else None


def as_text(value: object) -> str | None:
    """A text; None if it is empty, or none."""
    return value if isinstance(value, str) and value else None


def list_of(part: Any, key: str) -> list[Any]:
    """The list under a key of a JSON object; empty if there is none."""
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, list) else []


def object_of(part: Any, *keys: str) -> dict[str, Any]:
    """The object under a key of a JSON object, under the next key of that, and so on; empty if there is none."""
    for key in keys:
        part = part.get(key) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}


def json_text(value: Any) -> str | None:
    """The JSON text of a value from a JSON file; null if it is empty, or nested too deeply to be written."""
    if not value:
        return None
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return None
