"""`PROF_*`: what the device's own profiler wrote, beside or without the files of MindSpore's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stepscope.paths import natural
from stepscope.sources.ascend.side_files import as_index
from stepscope.sources.json_files import peek_object

_NAME = re.compile(r"PROF_\d*_?(\d{14,17})?.*")
_DEVICE = re.compile(r"device_(\d+)")


def is_raw(name: str) -> bool:
    """Whether a folder of this name is a raw profile."""
    return name.startswith("PROF_")


def newest_by_rank(directory: Path, names: Sequence[str]) -> dict[int, Path]:
    """The newest raw profile of each rank, by the times in their names.

    The rank is the one that `info.json` states, else the number of the device.

    Args:
        directory: Where they lie.
        names: The names there.
    """
    newest: dict[int, Path] = {}
    for name in sorted(filter(is_raw, names), key=_age):
        for rank in ranks_of(directory / name):
            newest[rank] = directory / name
    return newest


def ranks_of(profile: Path) -> list[int]:
    """The ranks whose devices a raw profile is of; empty if it has none."""
    return [_rank(device) for device in devices_of(profile)]


def devices_of(profile: Path) -> list[Path]:
    """Its folders of devices, in the order of their numbers."""
    found = [path for path in _entries(profile) if _DEVICE.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: natural(path.name))


def device_number(device: Path) -> int:
    """The number in the name of a device's folder."""
    match = _DEVICE.fullmatch(device.name)
    return as_index(match[1]) or 0 if match else 0


def files_of(profile: Path) -> list[Path]:
    """All files of a raw profile in order of their names, numbers in theirs."""
    return sorted((file for file in profile.rglob("*") if file.is_file()), key=lambda file: natural(str(file)))


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
