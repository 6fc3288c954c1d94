"""Folders of single ranks that together hold one job: `device0/profiler`, `device1/profiler`..."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

_NUMBER = re.compile(r"\d{1,9}")

_LEVELS = 3
"""How deep below a common folder the ranks' folders may be."""


def common_folders(pieces: Iterable[tuple[Path, str, int | None, int | None]]) -> dict[Path, Path]:
    """The common folder of some ranks' folders, if these are exactly the ranks of one job, or most of them and their
    names differ only in the rank.

    Without times, nothing else shows that recordings in several folders belong together. Otherwise duplicate or missing
    ranks may come from several jobs.

    Args:
        pieces: Folder, format, world size and rank of each recording.

    Returns:
        Folder to common folder, without folders that stay separate.
    """
    sizes: dict[tuple[str, int], dict[Path, list[int]]] = defaultdict(lambda: defaultdict(list))
    for folder, family, world_size, rank in pieces:
        if world_size is not None and world_size > 1 and rank is not None:
            sizes[family, world_size][folder].append(rank)
    homes: dict[Path, Path] = {}
    for (_, world_size), ranks in sizes.items():
        for level in range(_LEVELS):
            above: dict[Path, list[Path]] = defaultdict(list)
            for folder in ranks:
                if len(folder.parents) > level:
                    above[folder.parents[level]].append(folder)
            for parent, folders in above.items():
                held = [rank for folder in folders for rank in ranks[folder]]
                if len(folders) > 1 and (
                    sorted(held) == list(range(world_size)) or _are_numbered(parent, folders, ranks, world_size)
                ):
                    homes |= {folder: parent for folder in folders if folder not in homes}
    return homes


def _are_numbered(parent: Path, folders: list[Path], ranks: Mapping[Path, list[int]], world_size: int) -> bool:
    """Whether folders of single ranks lie as those of one job do of which some are missing: most ranks are there, and
    names differ only in the number of the rank."""
    numbers, names = [], set()
    for folder in folders:
        found = _NUMBER.findall(str(folder.relative_to(parent)))
        if len(ranks[folder]) != 1 or len(found) != 1 or int(found[0]) != ranks[folder][0]:
            return False
        numbers.append(ranks[folder][0])
        names.add(_NUMBER.sub("N", str(folder.relative_to(parent))))
    return len(names) == 1 and len(set(numbers)) == len(numbers) and 2 * len(numbers) > world_size
