"""Files that stepscope made from its own recordings for other tools: they say nothing that the recording does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

FORMAT = "stepscope-exported"
ABOUT = "recording.json"
_MOST_STEPS = 2**31


def exported_entries(directory: Path, names: Sequence[str]) -> set[str]:
    """Entries of a directory that were made from recordings which are still there.

    Each `exported-*.json` lists the files that were made from one recording. Where that recording is gone, they are all
    that is left of it and count as any other.

    Args:
        directory: The directory.
        names: The names in it.
    """
    entries: set[str] = set()
    for name in names:
        if not (name.startswith("exported-") and name.endswith(".json")):
            continue
        content = _content(directory / name)
        if content is None:
            continue
        entries.add(name)
        recording, files = content.get("recording"), content.get("files")
        if isinstance(recording, str) and isinstance(files, list) and _is_there(directory, recording):
            made = {PurePosixPath(file).parts[0] for file in files if isinstance(file, str) and file}
            entries |= made - {PurePosixPath(recording).parts[0]}
    return entries


def list_of_rank(directory: Path, rank: int) -> Path:
    """The list of what was made of a rank, in the directory of these files."""
    return directory / f"exported-{rank}.json"


def recorded_steps(exported: Path) -> list[int]:
    """The recorded number of each step of the files that a list names, which count from 1; empty if it has none."""
    content = _content(exported) or {}
    steps = content.get("steps")
    is_whole = isinstance(steps, list) and all(type(step) is int and 0 < step < _MOST_STEPS for step in steps)
    return list(steps) if isinstance(steps, list) and is_whole else []


def _is_there(directory: Path, recording: str) -> bool:
    """Whether a recording stands where the list says, or where it stood before the files went to `earlier/<stamp>`."""
    return any((place / recording / ABOUT).is_file() for place in (directory, *directory.parents[:2]))


def _content(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None
