"""Deleting the oldest records of all jobs and ranks, so that the base directory stays below its cap."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from stepscope.live.store.contents import Contents, RecordFile, is_in_use, remove_if_ended
from stepscope.live.store.files import holds_records
from stepscope.live.store.pace import Pace

PART = 5
"""The oldest one in five files go at a time, as with MindCluster."""


def age(contents: Contents, most_bytes: int, now_s: float, pace: Pace) -> int:
    """Delete the oldest fifth of the closed record files of all jobs and ranks, at least one, again and again until at
    most `most_bytes` remain or nothing is left to delete. Files that are open or not ours stay, whatever their size.

    Args:
        now_s: Time since the epoch on the clock of the disk.

    Returns:
        Bytes of all files that are left.
    """
    closed: list[RecordFile] = []
    last: set[Path] = set()
    for rank in contents.ranks:
        pace.step()
        if rank.wrote_lately(now_s):
            closed += rank.files[:-1]
        elif rank.files:
            closed += rank.files
            last.add(rank.files[-1].path)
    closed.sort(key=lambda file: (file.at_s, int(file.path.name)))
    total = contents.total
    while total > most_bytes and closed:
        count = max(1, len(closed) // PART)
        oldest, closed = closed[:count], closed[count:]
        for file in oldest:
            pace.step()
            if (file.path in last and is_in_use(file.path.parent)) or not holds_records(file.path):
                continue
            with suppress(OSError):
                file.path.unlink()
                total -= file.size
    for rank in contents.ranks:
        pace.step()
        remove_if_ended(rank, now_s)
    return max(total, 0)
