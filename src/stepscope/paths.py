"""Names of files as text: on Linux a name is bytes, and need not be UTF-8."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path | str) -> str:
    r"""A path as people, JSON and tables can take it: bytes that are no UTF-8 become escapes.

    To open the file or to tell it from others, use the path itself.

    Examples:
        >>> shown("run\udcff.json")
        'run\\xff.json'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")
