"""What is below the base directory of all jobs: how much, and which record files may be deleted."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.live.store.files import lock
from stepscope.live.store.pace import Pace
from stepscope.recording_format.light import GROUP_FILE, WORKER_FILE, is_record_name

RECENT_S = 900.0
"""The newest file of a rank that changed within this time may be open, also where no lock shows it: of TaskD, or of
another host. Chosen by us: longer than a checkpoint or a compilation takes."""


@dataclass(frozen=True)
class RecordFile:
    """One record file. `at_s` is when it last changed, or an earlier file of its rank if that was later (then the clock
    was set back)."""

    path: Path
    size: int
    at_s: float


@dataclass
class RankFiles:
    """The directory of one rank: `<task>/<digits>`."""

    path: Path
    files: list[RecordFile] = field(default_factory=list)
    """Files named by a number, in the order of their numbers."""
    others: list[str] = field(default_factory=list)
    """Names of everything else in it."""
    changed_s: float = 0.0

    def wrote_lately(self, now_s: float) -> bool:
        """Whether its process may be appending to its newest file, by the time of the last change."""
        return bool(self.files) and now_s - self.files[-1].at_s < RECENT_S


@dataclass
class Contents:
    """All that is below the base directory."""

    total: int = 0
    """Bytes of all files, ours and others."""
    ranks: list[RankFiles] = field(default_factory=list)


def contents_of(base: Path, pace: Pace) -> Contents:
    """Look through the base directory. Symbolic links are not followed; what vanishes meanwhile is left out."""
    found = Contents()
    for task in _entries(base, pace):
        if not _is_directory(task):
            found.total += _size(task)
            continue
        for rank in _entries(task.path, pace):
            if not _is_directory(rank):
                found.total += _size(rank)
            elif is_record_name(rank.name):
                found.ranks.append(_rank_files(rank, found, pace))
            else:
                found.total += _total_below(rank.path, pace)
    return found


def _rank_files(directory: os.DirEntry[str], found: Contents, pace: Pace) -> RankFiles:
    rank = RankFiles(Path(directory.path))
    with suppress(OSError):
        rank.changed_s = directory.stat(follow_symlinks=False).st_mtime
    numbered = []
    for entry in _entries(directory.path, pace):
        with suppress(OSError):
            if is_record_name(entry.name) and entry.is_file(follow_symlinks=False):
                state = entry.stat(follow_symlinks=False)
                numbered.append((int(entry.name), entry.name, state.st_size, state.st_mtime))
                found.total += state.st_size
                continue
        rank.others.append(entry.name)
        found.total += _total_below(entry.path, pace) if _is_directory(entry) else _size(entry)
    at_s = 0.0
    for _, name, size, changed_s in sorted(numbered):
        at_s = max(at_s, changed_s)
        rank.files.append(RecordFile(rank.path / name, size, at_s))
    return rank


def _total_below(directory: str, pace: Pace) -> int:
    total, waiting = 0, [directory]
    while waiting:
        for entry in _entries(waiting.pop(), pace):
            if _is_directory(entry):
                waiting.append(entry.path)
            else:
                total += _size(entry)
    return total


def rank_directories(directory: Path) -> list[Path]:
    """The directories of ranks: the one given, or those one or two levels below it, sorted; named by their numbers."""
    if is_record_name(directory.name):
        return [directory]
    found = []
    for task in filter(_is_directory, _entries(directory)):
        if is_record_name(task.name):
            found.append(Path(task.path))
            continue
        ranks = (rank for rank in _entries(task.path) if is_record_name(rank.name) and _is_directory(rank))
        found += [Path(rank.path) for rank in ranks]
    return sorted(found, key=lambda rank: (rank.parent, int(rank.name)))


def _entries(directory: str | Path, pace: Pace | None = None) -> Iterator[os.DirEntry[str]]:
    """What is in a directory; with breaks, where training runs beside it."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if pace is not None:
                pace.step()
            yield entry


def _is_directory(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_size
    return 0


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def use(directory: Path) -> int:
    """Show others, as long as this process lives, that it writes below a directory. On a disk without locks, the times
    of its files have to do.

    Returns:
        A descriptor, to be closed when nothing is written there any more.

    Raises:
        OSError: If the directory cannot be opened, or is a symbolic link.
    """
    descriptor = os.open(directory, _DIRECTORY)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor


def is_in_use(directory: Path) -> bool:
    """Whether a living process writes below a directory. On a disk without locks, none shows."""
    try:
        descriptor = os.open(directory, _DIRECTORY)
    except OSError:
        return False
    try:
        return not lock(descriptor)
    finally:
        os.close(descriptor)


def remove_if_ended(rank: RankFiles, now_s: float) -> None:
    """Remove the directory of a rank that has no records left and whose process has ended, and that of its job if it is
    empty then. Files that are not ours keep it."""
    if rank.files or now_s - rank.changed_s < RECENT_S or is_in_use(rank.path):
        return
    if not rank.others or (WORKER_FILE in rank.others and all(map(_is_ours, rank.others))):
        with suppress(OSError):
            for name in rank.others:
                (rank.path / name).unlink(missing_ok=True)
            rank.path.rmdir()
            rank.path.parent.rmdir()


def _is_ours(name: str) -> bool:
    """Whether a file is one that our workers write beside records, or what a killed one left of it."""
    return name in (WORKER_FILE, GROUP_FILE) or name.startswith((f".{WORKER_FILE}.", f".{GROUP_FILE}."))
