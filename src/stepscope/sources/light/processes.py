"""Which processes have written the record files of a rank: a restarted rank goes on in the newest file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_HOST = re.compile(
    rb'"SourceKind"\s*:\s*0\b[^{}\n]*"MsptiObjectId"\s*:\s*\{\s*"Pt"\s*:\s*\{\s*"ProcessId"\s*:\s*(\d{1,18})\b'
)
"""A host marker; those of devices have the number of the device in this place."""
_LOOKED_AT = 1 << 16
_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of the longest line in which a process is looked for, between two blocks."""


def files_by_process(files: Sequence[Path]) -> dict[int, list[Path]]:
    """The files in which each process has records, processes in the order in which they began.

    Only the beginning and the end of a file are read if they are of one process.

    Args:
        files: In the order in which they were written.

    Returns:
        With one entry, 0, if no file names a process.
    """
    found: dict[int, list[Path]] = {}
    for file in files:
        for process in _processes_in(file) or list(found)[-1:]:
            found.setdefault(process, []).append(file)
    return found or {0: list(files)}


def _processes_in(file: Path) -> list[int]:
    try:
        with file.open("rb") as text:
            first = _HOST.search(text.read(_LOOKED_AT))
            size = text.seek(0, 2)
            text.seek(max(size - _LOOKED_AT, 0))
            last = _HOST.findall(text.read())
            if first is not None and last and first[1] == last[-1]:
                return [int(first[1])]
            text.seek(0)
            names: dict[bytes, None] = {}
            rest = b""
            while block := text.read(_BLOCK):
                names.update(dict.fromkeys(_HOST.findall(rest + block)))
                rest = block[-_LONGEST:]
            return [int(name) for name in names]
    except OSError:
        return []
