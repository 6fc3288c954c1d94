"""Directories made by `stepscope collect`: below one, `<id>/` has the recordings of the host with that id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

OWN = ".stepscope-collect"
"""What `collect` keeps about a directory, in that directory; a leading dot keeps readers out."""
ABOUT = "about.json"
_DEEPEST = 40


def as_collected(path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a recording with the id of the host that it was collected from, if it was, as its host.

    Recordings state no host, its own name for itself, which several containers may share, or its address; answers are
    passed on more often than the mapping of ids to addresses.
    """
    host = _id_of(path)
    return dict(facts) if host is None else {**facts, "host": host}


def _id_of(path: Path) -> str | None:
    """The id of the host in whose folder of a collected directory a recording lies; None if it lies in none."""
    below = path.name
    for at, folder in enumerate(path.parents):
        if at > _DEEPEST:
            return None
        if below.isascii() and below.isdecimal() and len(below) < 10 and (folder / OWN / ABOUT).is_file():
            return below
        below = folder.name
    return None
