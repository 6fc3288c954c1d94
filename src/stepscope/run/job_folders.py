"""Folders of single ranks that together hold one job: `device0/profiler`, `device1/profiler`..."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_LEVELS = 3
"""How deep below a common folder the ranks' folders may be."""


def common_folders(pieces: Iterable[tuple[Path, str, int | None, int | None]]) -> dict[Path, Path]:
    """The common folder of some ranks' folders, if these are exactly the ranks of one job.

    Without times, nothing else shows that recordings in several folders belong together. Duplicate or missing ranks may
    come from several jobs.

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
                if len(folders) > 1 and sorted(held) == list(range(world_size)):
                    homes |= {folder: parent for folder in folders if folder not in homes}
    return homes
