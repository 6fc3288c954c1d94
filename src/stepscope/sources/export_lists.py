"""`exported-*.json`: which files stepscope made, and from which of its recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from stepscope.sources.side_files import peek_object

FORMAT = "stepscope-exported"
_MOST_STEPS = 2**31


@dataclass(frozen=True)
class ExportList:
    """One `exported-*.json`: the recording, entries of the directory, and whether all is there."""

    path: Path
    recording: str
    files: tuple[str, ...]
    complete: bool

    @property
    def entries(self) -> set[str]:
        """Names of the entries of the directory that the files are, or lie in."""
        return {_first(file) for file in self.files} - {_first(self.recording), ""}


def _first(path: str) -> str:
    return next(iter(PurePosixPath(path).parts), "")


def read_list(file: Path) -> ExportList | None:
    """What a list says; None if it is none, or damaged."""
    if not (file.name.startswith("exported-") and file.name.endswith(".json")):
        return None
    content = _content(file)
    if content is None:
        return None
    recording, files = content.get("recording"), content.get("files")
    if not isinstance(recording, str) or not recording or not isinstance(files, list):
        return ExportList(file, "-", (), complete=True)
    named = tuple(name for name in files if isinstance(name, str) and name)
    return ExportList(file, recording, named, content.get("complete") is not False)


def _content(file: Path) -> dict[str, Any] | None:
    content = peek_object(file)
    return content if content.get("format") == FORMAT else None


def list_of_rank(directory: Path, rank: int) -> Path:
    """The list of what was made of a rank, in the directory of these files."""
    return directory / f"exported-{rank}.json"


def recorded_steps(exported: Path) -> list[int]:
    """The recorded number of each step of the files that a list names, which count from 1; empty if it has none."""
    content = _content(exported) or {}
    steps = content.get("steps")
    is_whole = isinstance(steps, list) and all(type(step) is int and 0 < step < _MOST_STEPS for step in steps)
    return list(steps) if isinstance(steps, list) and is_whole else []
