"""`PROF_*`: files of the device's own profiler, with or without those of MindSpore."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from stepscope.json_values import as_index
from stepscope.paths import natural
from stepscope.sources.classic.files import entries_of, sort_files
from stepscope.sources.side_files import peek_object

_NAME = re.compile(r"PROF_\d*_?(\d{14,17})?.*")
_DEVICE = re.compile(r"device_(\d+)")
_Device = tuple[int | None, int]
"""The rank that a device states, and its number."""


def is_raw(name: str) -> bool:
    """Whether a folder of this name is a raw profile."""
    return name.startswith("PROF_")


def newest_by_rank(
    directory: Path, names: Sequence[str], ranks: Collection[int] = ()
) -> dict[int, list[tuple[str, Path]]]:
    """Rank to the files of its newest raw profile, by the times in their names, with names relative to `directory`.

    The rank is that of `info.json`; otherwise see `_ranks_of`, to which MindSpore's own files there name `ranks`.
    """
    newest: dict[_Device, list[tuple[str, Path]]] = {}
    for name in sorted(filter(is_raw, names), key=_age):
        for device, files in _by_device(directory / name, directory).items():
            newest.pop(device, None)
            newest[device] = files
    placed = _ranks_of(newest, ranks)
    return {placed[device]: files for device, files in newest.items()}


def _ranks_of(devices: Collection[_Device], ranks: Collection[int]) -> dict[_Device, int]:
    """Device to rank: the stated one, unless several devices state the same and have files by their own numbers.

    Else the rank has the number of the device if MindSpore's files name all of these; or else ranks have devices in
    their order, where there are as many: those of the second host of a job are 8 to 15, its devices 0 to 7.
    """
    stated = {rank for rank, _ in devices}
    numbers = sorted({number for _, number in devices})
    is_default = len(stated) == 1 and len(numbers) > 1 and set(numbers) <= set(ranks)
    if None not in stated and not is_default:
        return {device: rank for device in devices if (rank := device[0]) is not None}
    fits = len(ranks) == len(numbers) and not set(numbers) <= set(ranks)
    own = dict(zip(numbers, sorted(ranks) if fits else numbers, strict=True))
    return {device: own[device[1]] if device[0] is None or is_default else device[0] for device in devices}


def _by_device(profile: Path, root: Path) -> dict[_Device, list[tuple[str, Path]]]:
    """The files of each device."""
    devices = [path for path in entries_of(profile) if _DEVICE.fullmatch(path.name) and path.is_dir()]
    files = sorted(profile.rglob("*")) if devices else []
    numbered = sort_files([(file.relative_to(root).as_posix(), file) for file in files])
    return {(_stated_rank(path), device_number(path)): numbered.get(device_number(path), []) for path in devices}


def device_number(device: Path) -> int:
    """The number in the name of a device's folder."""
    match = _DEVICE.fullmatch(device.name)
    return as_index(match[1]) or 0 if match else 0


def _stated_rank(device: Path) -> int | None:
    """The stated rank; `-1` and the like are none."""
    infos = (path for path in entries_of(device) if path.name.startswith("info.json."))
    ranks = (as_index(peek_object(info).get("rank_id")) for info in infos)
    return next((rank for rank in ranks if rank is not None), None)


def _age(name: str) -> tuple[str, list[tuple[int, str]]]:
    """Sorts by the time in a name, then by its other numbers."""
    match = _NAME.fullmatch(name)
    return (match[1] or "" if match else ""), natural(name)
