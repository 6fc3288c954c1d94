"""Values that were read from a file as JSON text of our own, valid whatever they were."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any) -> str | None:
    """The JSON text of a value from a JSON file; null if it is empty, or nested too deeply to be written."""
    if not value:
        return None
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return None
