"""The small JSON files of a classic profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.sources.base import Sink


def read_object(path: Path | None, sink: Sink) -> Mapping[str, Any]:
    """The object in a JSON file; empty if there is none, with an issue if the file is damaged.

    Args:
        path: The file; None if the profile has none.
        sink: Told about damage.
    """
    if path is None:
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        sink.issue("error", path, f"cannot be read: {error}", "Copy the file again; nothing else is lost.")
        return {}
    if not isinstance(content, dict):
        sink.issue("error", path, "holds no JSON object", "Copy the file again; nothing else is lost.")
        return {}
    return content


def as_number(value: object) -> float | None:
    """A figure of a JSON file; None for anything that is none, infinite or not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if number - number == 0 else None
