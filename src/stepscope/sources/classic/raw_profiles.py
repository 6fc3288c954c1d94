"""`PROF_*`: what the device's own profiler wrote, beside or without the files of MindSpore's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stepscope.paths import natural
from stepscope.sources.ascend.side_files import as_index
from stepscope.sources.classic.files import sort_files
from stepscope.sources.json_files import peek_object

_NAME = re.compile(r"PROF_\d*_?(\d{14,17})?.*")
_DEVICE = re.compile(r"device_(\d+)")


def is_raw(name: str) -> bool:
    """Whether a folder of this name is a raw profile."""
    return name.startswith("PROF_")


def newest_by_rank(directory: Path, names: Sequence[str]) -> dict[int, list[tuple[str, Path]]]:
    """The files of the newest raw profile of each rank, by the times in their names.

    The rank is the one that `info.json` states, else the number of the device.

    Args:
        directory: Where they lie.
        names: The names there.

    Returns:
        Rank to files, with their names relative to `directory`.
    """
    newest: dict[int, list[tuple[str, Path]]] = {}
    for name in sorted(filter(is_raw, names), key=_age):
        newest.update(by_rank(directory / name, directory))
    return newest


def by_rank(profile: Path, root: Path) -> dict[int, list[tuple[str, Path]]]:
    """The files of a raw profile by the rank of their device, with their names relative to `root`."""
    devices = [path for path in _entries(profile) if _DEVICE.fullmatch(path.name) and path.is_dir()]
    files = sorted(profile.rglob("*")) if devices else []
    numbered = sort_files([(file.relative_to(root).as_posix(), file) for file in files])
    return {_rank(device): numbered.get(device_number(device), []) for device in devices}


def device_number(device: Path) -> int:
    """The number in the name of a device's folder."""
    match = _DEVICE.fullmatch(device.name)
    return as_index(match[1]) or 0 if match else 0


def _rank(device: Path) -> int:
    """The stated rank; `-1` and the like are none."""
    for info in (path for path in _entries(device) if path.name.startswith("info.json.")):
        rank = as_index(peek_object(info).get("rank_id"))
        if rank is not None:
            return rank
    return device_number(device)


def _age(name: str) -> tuple[str, list[tuple[int, str]]]:
    """Sorts by the time in a name, then by its other numbers."""
    match = _NAME.fullmatch(name)
    return (match[1] or "" if match else ""), natural(name)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
