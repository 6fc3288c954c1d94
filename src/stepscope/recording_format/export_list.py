"""`exported-<R>.json`: which files stepscope exported, and from which recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from stepscope.json_values import list_of

FORMAT = "stepscope-exported"
EARLIER = "earlier"
"""The directory for exports of earlier recordings of a rank, next to the newest export."""
UNFINISHED = ".exporting-"
"""Prefix of the directory of an export in progress; readers ignore names that begin with a dot."""
NOWHERE = "-"
"""Placeholder for the recording if a list does not name one."""
_MOST_STEPS = 2**31


def list_name(rank: int) -> str:
    """The file that lists the exported files of a rank."""
    return f"exported-{rank}.json"


def is_list_name(name: str) -> bool:
    """Whether a file with this name may be an export list."""
    return name.startswith("exported-") and name.endswith(".json")


@dataclass(frozen=True)
class ExportList:
    """One list of exported files.

    Args:
        path: Path of the list.
        recording: The recording, relative to the `profiler` directory.
        files: The exported files, relative to the directory of the list.
        complete: Whether all of them are in place.
        steps: The recorded number of each step of the files, which count from 1; empty if unknown.
        left_out: What was not exported, and why.
    """

    path: Path
    recording: str
    files: tuple[str, ...]
    complete: bool
    steps: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": FORMAT,
            "recording": self.recording,
            "complete": self.complete,
            "steps": list(self.steps),
            "files": list(self.files),
            "left_out": dict(self.left_out),
        }

    @classmethod
    def of(cls, path: Path, values: Mapping[str, Any]) -> ExportList | None:
        """From the content of a file; None if it is not an export list."""
        if values.get("format") != FORMAT:
            return None
        steps = list_of(values, "steps")
        if not all(type(step) is int and 0 < step < _MOST_STEPS for step in steps):
            steps = []
        recording, files = values.get("recording"), values.get("files")
        if not isinstance(recording, str) or not recording or not isinstance(files, list):
            return cls(path, NOWHERE, (), complete=True, steps=tuple(steps))
        named = tuple(name for name in files if isinstance(name, str) and name)
        return cls(path, recording, named, values.get("complete") is not False, tuple(steps))

    @property
    def entries(self) -> set[str]:
        """Names of the directory entries that are, or contain, the files."""
        return {_first(file) for file in self.files} - {_first(self.recording), ""}


def _first(path: str) -> str:
    return next(iter(PurePosixPath(path).parts), "")
