"""Files that stepscope made from its own recordings for other tools: they say nothing that the recording does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

FORMAT = "stepscope-exported"
ABOUT = "recording.json"


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


def _is_there(directory: Path, recording: str) -> bool:
    """Whether a recording stands where the list says, or where it stood before the files went to `earlier/<stamp>`."""
    return any((place / recording / ABOUT).is_file() for place in (directory, *directory.parents[:2]))


def _content(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None
