"""Folders of single ranks that together hold one job: `device0/profiler`, `device1/profiler`..."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_LEVELS = 3
"""How far below a common folder those of ranks may lie."""


def common_folders(pieces: Iterable[tuple[Path, str, int | None, int | None]]) -> dict[Path, Path]:
    """The folder that the folders of some ranks have in common, where these are exactly all ranks of one job.

    Without times nothing else tells that recordings in several folders belong together, and ranks that are twice or
    missing may be of several jobs.

    Args:
        pieces: Folder, format, world size and rank of each recording.

    Returns:
        Folder to the one in common; without those that stay by themselves.
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
                if len(folders) > 1 and sorted(held) == list(range(world_size)):
                    homes |= {folder: parent for folder in folders if folder not in homes}
    return homes
