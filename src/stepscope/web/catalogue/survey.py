"""What lies below a directory, without opening any file, and what of it is still being written."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.paths import lies_within

REST_S = 2.0
"""A file that has not changed for so long is whole, chosen by us: writers of recordings write many times a second."""

LONGEST_WAIT_S = 60.0
"""A file that changes all the time is read nevertheless after so long, and then again as often."""

Facts = tuple[int, int, int]
"""Size in bytes, time of change in ns since the epoch, inode."""


@dataclass
class Survey:
    """The files and directories below a root, with their facts.

    Args:
        files: Regular files.
        others: Directories and whatever else there is.
    """

    files: dict[str, Facts] = field(default_factory=dict)
    others: dict[str, Facts] = field(default_factory=dict)

    def changed_ns(self, files: Iterable[Path]) -> int:
        """The newest change of some files, ns since the epoch; 0 if none is there."""
        return max((facts[1] for file in files if (facts := self.files.get(str(file)))), default=0)

    def size_bytes(self, files: Iterable[Path]) -> int:
        """The size of some files."""
        return sum(facts[0] for file in files if (facts := self.files.get(str(file))))


def survey(root: Path, within: Sequence[Path], store: Path | None = None) -> Survey:
    """Look at all below a root, except a store; links that lead out of the directories `within` are not followed."""
    found = Survey()
    try:
        info = root.stat()
    except OSError:
        return found
    if not stat.S_ISDIR(info.st_mode):
        found.files[str(root)] = _facts(info)
        return found
    seen = {(info.st_dev, info.st_ino)}
    if store is not None and store.is_dir():
        own = store.stat()
        seen.add((own.st_dev, own.st_ino))
    found.others[str(root)] = (0, 0, info.st_ino)
    waiting = deque([str(root)])
    while waiting:
        try:
            with os.scandir(waiting.popleft()) as scan:
                entries = list(scan)
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_symlink() and not lies_within(entry.path, within):
                    continue
                info = entry.stat()
            except OSError:
                continue
            if not stat.S_ISDIR(info.st_mode):
                (found.files if stat.S_ISREG(info.st_mode) else found.others)[entry.path] = _facts(info)
            elif not entry.name.startswith(".") and (info.st_dev, info.st_ino) not in seen:
                seen.add((info.st_dev, info.st_ino))
                found.others[entry.path] = (0, 0, info.st_ino)  # what changes in it, its files show
                waiting.append(entry.path)
    return found


class Rest:
    """Which files have come to rest."""

    def __init__(self) -> None:
        self._last: dict[str, Facts] = {}
        self._changed: dict[str, float] = {}
        """When a file was last seen to change, and..."""
        self._since: dict[str, float] = {}
        """... since when it has not been at rest; both in seconds of the monotonic clock."""

    def note(self, found: Survey) -> None:
        """Take note of what was seen just now."""
        now, clock = time.monotonic(), time.time()
        for file, facts in found.files.items():
            last = self._last.get(file)
            if last == facts:
                continue
            age = clock - facts[1] / 1e9
            if last is not None or 0 <= age < REST_S:
                self._changed[file] = now if last is not None else now - age
                self._since.setdefault(file, now)
        self._last = found.files
        for file, changed in list(self._changed.items()):
            if file not in found.files or now - changed >= REST_S:
                self._changed.pop(file)
                self._since.pop(file, None)

    def is_written(self, files: Iterable[Path]) -> bool:
        """Whether some file is still being written, and not for so long that it has to be read anyway."""
        now = time.monotonic()
        return any((since := self._since.get(str(file))) is not None and now - since < LONGEST_WAIT_S for file in files)

    def start_anew(self, files: Iterable[Path]) -> None:
        """Files that are read now have to wait again if they go on changing."""
        now = time.monotonic()
        self._since.update((str(file), now) for file in files if str(file) in self._since)


def _facts(info: os.stat_result) -> Facts:
    return info.st_size, info.st_mtime_ns, info.st_ino
