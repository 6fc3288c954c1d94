"""The columns of a CSV file as data: what a header may be called and how its values are kept.

A header is compared in lower case, without its unit in brackets and with `_` for blanks, so that
`Start Time(us)` and `Task Start Time(us)` need only `start_time` and `task_start_time`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "shape", "int", "float", "time", "duration", "kib", "mib", "device"]
"""`time`: microseconds as text, exact; `duration`: microseconds as a number; `kib`, `mib`: memory sizes;
`shape`: text inside an extra pair of quotes; `device`: an index, with or without `NPU:` before it."""

_UNIT = re.compile(r"\((?:us|ns|ms|%|kb|mb|b|byte|gb/s)\)(?:\(estimate\))?", re.IGNORECASE)


def column_key(header: str) -> str:
    """The form in which headers are compared."""
    return _UNIT.sub("", header).strip().strip('"').strip("\ufeff").strip().lower().replace(" ", "_")


@dataclass(frozen=True)
class Field:
    """A column of a file: our name, how its values are kept, and the headers (as keys) it may have."""

    column: str
    kind: Kind
    headers: tuple[str, ...]
    required: bool = False


@dataclass(frozen=True)
class FileLayout:
    """The columns of a file that are read and those that are known but not kept."""

    fields: tuple[Field, ...]
    ignored: frozenset[str] = frozenset()
