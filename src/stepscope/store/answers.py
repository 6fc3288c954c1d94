"""Kept answers: one file a run and version of the package, to which processes append what they computed.

A file is a heading, what it is about, and records behind each other: `MAGIC`, key, checksum, length, content. Records
are appended by a single write, and believed only if their checksum is right, so processes need not wait for each other,
and a torn or damaged record costs only what is behind it, until the next process to append writes the file anew.
"""

from __future__ import annotations

import os
import re
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from stepscope.store.drafts import DRAFT, draft_name, is_abandoned

FOLDER = "answers"
"""The folder of the store with these files."""

SHARE = 0.1
"""Share of the store's size that answers may take, chosen by us: their file is small beside the rows of its run."""

FILE_SHARE = 0.25
"""Share of that which one run may take; a file that grows beyond it starts anew."""

_HEADING = b"stepscope answers 1\n"
_MAGIC = b"\nANS"
_RECORD = struct.Struct("<4s16sIQ")
_ABOUT = bytes(16)
"""The key of the first record, which says what the file is about."""
_NAME = re.compile(r"([0-9a-f]{40})-[0-9a-f]{16}")
_USED_S = 60.0
_BINARY = getattr(os, "O_BINARY", 0)


class StoredSupplement(msgspec.Struct, frozen=True, array_like=True):
    """Tables of a rank from another entry than its own, and when that was written."""

    entry: str
    created_ns: int
    tables: tuple[str, ...]


class StoredRank(msgspec.Struct, frozen=True, array_like=True):
    """A rank of a run: its number, where that comes from, the entry with its rows and when that was written, and what
    another entry supplies."""

    rank: int
    origin: str
    entry: str
    created_ns: int
    supplement: StoredSupplement | None = None

    @property
    def entries(self) -> tuple[str, ...]:
        """All entries with its rows."""
        return (self.entry,) if self.supplement is None else (self.entry, self.supplement.entry)


class About(msgspec.Struct, frozen=True):
    """What a file of answers is about: the path of a run, as `shown`, and its ranks."""

    path: str
    ranks: list[StoredRank]


@dataclass(frozen=True)
class AnswerFile:
    """A file of answers, as listed by `list_answers`; `used` is seconds since the epoch."""

    file: Path
    size_bytes: int
    used: float

    def about(self) -> About:
        """What it is about; nothing if it is damaged."""
        with suppress(OSError, msgspec.MsgspecError), self.file.open("rb") as stream:
            for key, start, length in _places(stream, self.size_bytes):
                content = _content(self.file, key, start, length)
                if key == _ABOUT and content is not None:
                    return msgspec.msgpack.decode(content, type=About)
                break
        return About("", [])

    @property
    def version(self) -> str:
        """What identifies the code that answered."""
        return self.file.name.partition("-")[2]


class KeptRecords:
    """The records of one run, read as they are asked for; threads may share it.

    Args:
        store: Directory of the store.
        run: Identifies the run and the rows of all its ranks: 40 hexadecimal digits.
        version: Identifies the code that answers: 16 hexadecimal digits.
        about: What the run is.
        limit_bytes: How large the store may be, if records are added.
    """

    def __init__(self, store: Path, run: str, version: str, about: About, limit_bytes: int = 0) -> None:
        self.file = store / FOLDER / f"{run}-{version}"
        self._about = about
        self._share = int(limit_bytes * SHARE)
        self._lock = threading.Lock()
        self._places: dict[bytes, tuple[int, int]] | None = None
        self._end = 0
        """Where the last whole record ends."""
        self._is_torn = False
        """Whether the file, if there is one, goes on with something else."""

    @property
    def limit_bytes(self) -> int:
        """Beyond that size, the file starts anew."""
        return int(self._share * FILE_SHARE)

    def has(self, key: bytes) -> bool:
        """Whether there is a record of a key."""
        with self._lock:
            return key in self._known()

    def find(self, key: bytes) -> bytes | None:
        """The content kept under a key of 16 bytes; None if there is none, or it is damaged."""
        with self._lock:
            place = self._known().get(key)
            if place is None:
                return None
            try:
                content = _content(self.file, key, *place)
            except OSError:
                content = None
            if content is None:  # damaged, or another process wrote the file anew
                del self._known()[key]
                self._is_torn = True
            return content

    def forget(self, key: bytes) -> None:
        """Know a key no more in this process."""
        with self._lock:
            self._known().pop(key, None)

    def add(self, records: Mapping[bytes, bytes]) -> None:
        """Keep the contents of some keys; raises `OSError` if the store cannot take them."""
        data = b"".join(_record(key, content) for key, content in records.items())
        with self._lock:
            known = self._known()
            start = self._append(data)
            for key, content in records.items():
                known[key] = (start + _RECORD.size, len(content))
                start += _RECORD.size + len(content)
            self._end = start

    def _append(self, data: bytes) -> int:
        """Write records; returns where they begin."""
        is_full = self._end + len(data) > self.limit_bytes
        if not self._is_torn and not is_full:
            with suppress(FileNotFoundError):
                handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | _BINARY)
                try:
                    if os.write(handle, data) != len(data):
                        self._is_torn = True
                        raise OSError("no room")
                    return os.lseek(handle, 0, os.SEEK_CUR) - len(data)
                finally:
                    os.close(handle)
        return self._write_anew(data, [] if is_full else list(self._known().items()))

    def _write_anew(self, data: bytes, kept: Sequence[tuple[bytes, tuple[int, int]]]) -> int:
        """Write a new file with the records that are whole, and some new ones; returns where these begin."""
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        draft = self.file.with_name(draft_name(self.file.name))
        places: dict[bytes, tuple[int, int]] = {}
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb") as out:
                out.write(_HEADING + _record(_ABOUT, msgspec.msgpack.encode(self._about)))
                for key, place in kept:
                    content = None
                    with suppress(OSError):
                        content = _content(self.file, key, *place)
                    if content is not None:
                        places[key] = (out.tell() + _RECORD.size, len(content))
                        out.write(_record(key, content))
                start = out.tell()
                out.write(data)
            draft.replace(self.file)
        finally:
            draft.unlink(missing_ok=True)
        self._places, self._is_torn = places, False
        self._bound()
        return start

    def _known(self) -> dict[bytes, tuple[int, int]]:
        """Where the content of each key is and how long it is; read once."""
        if self._places is None:
            self._places = {}
            with suppress(OSError), self.file.open("rb") as stream:
                self._is_torn = True
                size = stream.seek(0, os.SEEK_END)
                for key, start, length in _places(stream, size):
                    self._places[key] = (start, length)
                    self._end = start + length
                self._is_torn = self._end != size or not size
                if time.time() - os.fstat(stream.fileno()).st_mtime > _USED_S:
                    os.utime(self.file)
            self._places.pop(_ABOUT, None)
        return self._places

    def _bound(self) -> None:
        """Drop answers of other versions about this run, and those that were not used for the longest."""
        run = self.file.name.partition("-")[0]
        for other in self.file.parent.glob(f"{run}-*"):
            if other != self.file and _NAME.fullmatch(other.name):
                other.unlink(missing_ok=True)
        drop_answers(self.file.parents[1], self._share, spare=self.file)


def list_answers(store: Path) -> list[AnswerFile]:
    """All files of answers in a store, the most recently used first."""
    found = []
    with suppress(OSError), os.scandir(store / FOLDER) as scan:
        for entry in scan:
            with suppress(OSError):
                if _NAME.fullmatch(entry.name):
                    info = entry.stat()
                    found.append(AnswerFile(Path(entry.path), info.st_size, info.st_mtime))
    return sorted(found, key=lambda one: (-one.used, one.file.name))


def drop_answers(store: Path, limit_bytes: int, spare: Path | None = None) -> int:
    """Remove the least recently used files of answers until the rest fits, never `spare`; returns the rest's bytes."""
    files = list_answers(store)
    total = sum(one.size_bytes for one in files)
    for one in reversed(files):
        if total <= limit_bytes:
            break
        if one.file != spare:
            one.file.unlink(missing_ok=True)
            total -= one.size_bytes
    return total


def drop_stale_answers(store: Path) -> None:
    """Remove the answers about entries that are gone, and what killed processes left."""
    for one in list_answers(store):
        ranks = one.about().ranks
        if not ranks or not all((store / entry).is_dir() for rank in ranks for entry in rank.entries):
            one.file.unlink(missing_ok=True)
    for draft in (store / FOLDER).glob(f"*{DRAFT}"):
        if is_abandoned(draft):
            draft.unlink(missing_ok=True)


def _record(key: bytes, content: bytes) -> bytes:
    return _head(key, content) + content


def _head(key: bytes, content: bytes) -> bytes:
    return _RECORD.pack(_MAGIC, key, zlib.crc32(content, zlib.crc32(key)), len(content))


def _places(stream: BinaryIO, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Key, begin and length of each record of a file, up to the first that is cut off or none."""
    stream.seek(0)
    if stream.read(len(_HEADING)) != _HEADING:
        return
    place = len(_HEADING)
    while place + _RECORD.size <= size:
        stream.seek(place)
        magic, key, _, length = _RECORD.unpack(stream.read(_RECORD.size))
        place += _RECORD.size
        if magic != _MAGIC or place + length > size:
            return
        yield key, place, length
        place += length


def _content(file: Path, key: bytes, start: int, length: int) -> bytes | None:
    """The content of a record; None if it is another one or damaged."""
    with file.open("rb", buffering=0) as stream:
        stream.seek(start - _RECORD.size)
        head, content = stream.read(_RECORD.size), stream.read(length)
    return content if head == _head(key, content) else None
