"""Reading one JSON file that another tool wrote."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from stepscope.sources.base import Sink

_LARGEST_PEEK = 16 << 20
_LARGEST = 1e18
AGAIN = "Copy the file again, or run the profiler's analysis again; all else is read."


def read_object(path: Path | None, sink: Sink) -> dict[str, Any] | None:
    """The JSON object in a file; None, and told, if there is none that can be read.

    Args:
        path: The file; None is a file that is not there, of which nothing is told.
        sink: Told about damage.
    """
    if path is None:
        return None
    try:
        return object_in(path.read_bytes(), path, sink)
    except OSError as error:
        tell_unread(path, error, sink)
        return None


def peek_object(path: Path | None) -> dict[str, Any]:
    """The JSON object in a file of at most 16 MiB; empty, without a word, if there is none that can be read."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            value = msgspec.json.decode(file.read(_LARGEST_PEEK).decode("utf-8-sig", "replace"))
    except (OSError, msgspec.MsgspecError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def object_in(text: bytes, path: Path, sink: Sink) -> dict[str, Any] | None:
    """The JSON object in the text of a file; None, and told, if there is none that can be read."""
    if not text.strip():
        sink.issue("error", path, "is empty", AGAIN)
        return None
    try:
        value = msgspec.json.decode(text.decode("utf-8-sig", "replace"))
    except RecursionError:
        sink.issue("error", path, "is nested too deeply to be read", AGAIN)
        return None
    except msgspec.MsgspecError as error:
        sink.issue("error", path, f"is cut off or damaged ({error})", AGAIN)
        return None
    if not isinstance(value, dict):
        sink.issue("error", path, "holds no JSON object", AGAIN)
        return None
    return value


def tell_unread(path: Path, error: OSError, sink: Sink) -> None:
    """Tell that a file cannot be read."""
    problem = f"cannot be read: {error.strerror or error}"
    sink.issue("error", path, problem, "Check the file and the disk that it is on; all else is read.")


def list_of(part: Any, key: str) -> list[Any]:
    """The list under a key of a JSON object; empty if there is none."""
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, list) else []


def as_number(value: object) -> float | None:
    """A figure; None for anything that is none."""
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
