"""Reading records as they grow: each look takes what was appended since the last one, in all files of all ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.live.store.contents import rank_directories
from stepscope.live.store.files import files_in, holds_records
from stepscope.recording_format.light_ranges import Problems, WholeLines

_BLOCK = 1 << 20
_HEAD = 160
"""Bytes; the time of the first marker is among them."""
MOST_BYTES = 64 << 20
"""Read in one look at the most, of all ranks together; the rest follows in the next ones."""


@dataclass(frozen=True)
class Appended:
    """Whole lines that were appended to the records of a rank; `directory` is that of the rank, named by its number."""

    directory: Path
    lines: bytes

    @property
    def rank(self) -> int:
        """Number of the rank."""
        return int(self.directory.name)


@dataclass
class _File:
    """How far a file was read."""

    inode: int
    head: bytes
    """How it begins: another file may have the same inode."""
    lines: WholeLines
    offset: int = 0


@dataclass
class Tail:
    """Reads what is appended below a directory: that of all jobs, of one job, or of one rank.

    Args:
        directory: Where to look; it may be empty or missing at first.
        most_bytes: Read in one look at the most.
        from_end: Pass over what is there at the first look.
    """

    directory: Path
    most_bytes: int = MOST_BYTES
    from_end: bool = False
    unreadable: int = 0
    """Times that a file could not be read, other than since it has vanished."""
    _problems: Problems = field(default_factory=Problems)
    _files: dict[Path, _File] = field(default_factory=dict)
    _first: bool = True
    _next: int = 0

    def look(self) -> Iterator[Appended]:
        """What was appended since the last look, rank by rank, each in the order of its files.

        Ranks take turns to be first, so that none has to wait for ever when there is more than `most_bytes`.
        """
        ranks = self._ranks()
        present = {file for files in ranks.values() for file in files}
        self._files = {file: state for file, state in self._files.items() if file in present}
        order = list(ranks)
        self._next = self._next % len(order) if order else 0
        left = self.most_bytes
        for directory in order[self._next :] + order[: self._next]:
            for file in ranks[directory]:
                for lines in self._appended(file, left):
                    left -= len(lines)
                    yield Appended(directory, lines)
                if left <= 0:
                    break
            if left <= 0:
                self._next += 1
                break
        self._first = False

    @property
    def too_long(self) -> int:
        """Lines that were passed over as they are longer than 1 MiB."""
        return self._problems.bad_lines

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read at once, than the last look took."""
        return any(state.offset < _size(file) for file, state in self._files.items())

    def _ranks(self) -> dict[Path, list[Path]]:
        """The record files of each rank, in the order of their numbers."""
        found: dict[Path, list[Path]] = {}
        for directory in rank_directories(self.directory):
            with suppress(OSError):
                if files := files_in(directory):
                    found[directory] = files
        return found

    def _appended(self, file: Path, most: int) -> Iterator[bytes]:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.unreadable += not isinstance(error, FileNotFoundError)
            return
        try:
            info = os.fstat(descriptor)
            state = self._files.get(file)
            if state is None:
                if not info.st_size or not holds_records(file):
                    return
                state = self._files[file] = self._begun(info.st_ino, os.pread(descriptor, _HEAD, 0))
                if self.from_end and self._first:
                    state.offset = info.st_size
                    state.lines.skipping = os.pread(descriptor, 1, max(info.st_size - 1, 0)) != b"\n"
            if info.st_size == state.offset and state.inode == info.st_ino:
                return
            head = os.pread(descriptor, _HEAD, 0)
            same = state.inode == info.st_ino and head.startswith(state.head) and info.st_size > state.offset
            if not same:  # replaced or cut: read it anew
                state = self._files[file] = self._begun(info.st_ino, head)
            while most > 0 and (block := os.pread(descriptor, min(_BLOCK, most), state.offset)):
                state.offset += len(block)
                most -= len(block)
                if lines := state.lines.take(block):
                    yield lines
        except OSError:
            self.unreadable += 1
        finally:
            os.close(descriptor)

    def _begun(self, inode: int, head: bytes) -> _File:
        return _File(inode, head, WholeLines(self._problems))


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0
