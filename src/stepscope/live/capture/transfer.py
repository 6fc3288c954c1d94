"""Sending a capture from its host to the manager's, in pieces, where it can be compared with those of other hosts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from stepscope.errors import StepscopeError
from stepscope.live.capture.room import CAPTURES, MARKER, size_of
from stepscope.live.places import safe_name
from stepscope.record.files import FILE_MODE, make_private

MOST_BYTES = 256 << 20
"""Larger captures stay where they are; eight steps of a large model take about 50 MB."""
MOST_FILES = 1000
PIECE_BYTES = 512 << 10
MOST_NAME = 512
_DIGITS = 20
"""Of a time in ns; a system takes no time beyond the year 2262."""


class NotSent(StepscopeError):
    """A capture cannot be sent, or what arrives is none; the text is the reason."""


def pieces_of(rank_directory: str, capture: str) -> Iterator[tuple[str, bytes]]:
    """The files of a capture in pieces: relative name and content, those of a file in order.

    Args:
        rank_directory: Of the records of its rank. Nothing else than a capture below it is sent.

    Raises:
        NotSent: If there is no such capture, or it is too large.
    """
    directory = Path(rank_directory) / CAPTURES / safe_name(capture)
    if not rank_directory or not (directory / MARKER).is_file():
        raise NotSent(f"there is no capture {capture[:100]} on this host")
    if size_of(directory) > MOST_BYTES:
        raise NotSent(f"{directory} is larger than the {MOST_BYTES >> 20} MiB that are sent; copy it by hand")
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name.startswith("."):
            continue
        name = str(path.relative_to(directory))
        try:
            times = path.stat().st_mtime_ns
            with path.open("rb") as file:
                yield f"{name}\0{times}", b""
                while piece := file.read(PIECE_BYTES):
                    yield name, piece
        except OSError as error:
            raise NotSent(f"{path}: cannot be read ({error.strerror or error})") from error


class Arriving:
    """A capture that arrives in pieces.

    Args:
        directory: Where its files go; made, private and empty.

    Raises:
        NotSent: If it cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._size = 0
        self._times: dict[Path, int] = {}
        try:
            shutil.rmtree(directory, ignore_errors=True)
            make_private(directory)
        except OSError as error:
            raise NotSent(f"{directory}: cannot be created ({error.strerror or error})") from error

    def take(self, name: str, piece: bytes) -> None:
        """A piece of a file.

        Raises:
            NotSent: If the name leads out of the directory, all of it is too large, or it cannot be written.
        """
        name, _, time_ns = name.partition("\0")
        relative = PurePosixPath(name)
        if not name or len(name) > MOST_NAME or relative.is_absolute() or ".." in relative.parts:
            raise NotSent(f"{name[:80]!r} is not the name of a file in a capture")
        self._size += len(piece)
        path = self.directory / relative
        if time_ns:
            self._times[path] = int(time_ns) if time_ns.isdecimal() and len(time_ns) < _DIGITS else 0
        if self._size > MOST_BYTES or len(self._times) > MOST_FILES or path not in self._times:
            raise NotSent("it has more or other files than a capture may have")
        try:
            make_private(path.parent)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE), "ab") as file:
                file.write(piece)
        except OSError as error:
            raise NotSent(f"{path}: cannot be written ({error.strerror or error})") from error

    def complete(self) -> None:
        """All has arrived: files get the times that they have on their host."""
        for path, time_ns in self._times.items():
            os.utime(path, ns=(time_ns, time_ns))

    def drop(self) -> None:
        """Delete what has arrived."""
        shutil.rmtree(self.directory, ignore_errors=True)
