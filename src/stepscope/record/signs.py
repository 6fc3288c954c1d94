"""Messages from the processes of a recorded command to `stepscope record`: one line each, in a file."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "STEPSCOPE_SIGNS"
PYTHON, FRAMEWORK, FAILED = "python", "framework", "failed"
RECORDING, ANALYSING, ANALYSED = "recording", "analysing", "analysed"


def give(kind: str, text: str = "") -> None:
    """Add a line, if this process runs under `stepscope record`. Never raises."""
    place = os.environ.get(VARIABLE)
    if not place:
        return
    with suppress(OSError):
        descriptor = os.open(place, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, (json.dumps([os.getpid(), kind, text]) + "\n").encode())
        finally:
            os.close(descriptor)


@dataclass
class Signs:
    """The messages so far."""

    file: Path
    """Created empty."""
    _said: list[tuple[int, str, str]] = field(default_factory=list)
    _read: int = 0

    def __post_init__(self) -> None:
        self.file.touch(mode=0o600)

    def look(self) -> None:
        """Read new messages."""
        with suppress(OSError), self.file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                with suppress(ValueError):
                    process, kind, text = json.loads(line)
                    self._said.append((int(process), str(kind), str(text)))

    def of(self, kind: str) -> list[str]:
        """The distinct texts of a kind, in order."""
        return list(dict.fromkeys(text for _, said, text in self._said if said == kind))
