"""Bytes of a trace file, plain or gzip, in pieces; a damaged gzip member is read up to the byte that is damaged."""

from __future__ import annotations

import zlib
from io import BufferedReader
from pathlib import Path
from typing import Any

from isal import isal_zlib

from stepscope.errors import UnreadableInput

GZIP_MAGIC = b"\x1f\x8b"
_READ_BYTES = 1 << 20
_CHECKSUM = "incorrect data check"
"""The problem if everything inflates and only the checksum is wrong: the place of the damage is unknown."""
_STEP_BYTES = 1 << 12
_MOST_BYTES = 16 << 20
"""More than an inflater holds back in one call; data after that is not searched."""


class ByteStream:
    """A file as the chunker reads it: this one is not compressed."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.position = 0
        """Bytes of the file that were read."""
        self.damage: str | None = None
        """Why the stream ended early, if it did."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end."""
        try:
            data = self._file.read(size)
        except OSError as error:
            self.damage = f"reading failed at byte {self._file.tell()} ({error})"
            return b""
        self.position += len(data)
        return data

    def read_into(self, room: memoryview) -> int:
        """Like `read`, to the beginning of `room`; how many bytes that were."""
        try:
            count = self._file.readinto(room)
        except OSError as error:
            self.damage = f"reading failed at byte {self._file.tell()} ({error})"
            return 0
        self.position += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class GzipStream(ByteStream):
    """A gzip file of one or more members. A cut or damaged one gives what can be inflated, then ends with `damage`."""

    def __init__(self, file: BufferedReader) -> None:
        super().__init__(file)
        self._members = isal_zlib.decompressobj(wbits=31)
        self._member_offset = 0
        """Where the current member starts in the file."""
        self._member_bytes = 0
        """How much of it was inflated."""
        self._ended = False
        self._held = b""

    def read(self, size: int) -> bytes:
        """See `ByteStream`."""
        while not self._held and not self._ended:
            self._fill(size)
        out, self._held = self._held[:size], self._held[size:]
        return out

    def read_into(self, room: memoryview) -> int:
        """See `ByteStream`."""
        data = self.read(len(room))
        room[: len(data)] = data
        return len(data)

    def _fill(self, size: int) -> None:
        """Inflate the next piece into `_held`; it may stay empty."""
        data = self._members.unconsumed_tail or self._members.unused_data
        data = data or super().read(_READ_BYTES)
        if self._members.eof:
            if not data.startswith(GZIP_MAGIC):  # the end, or padding after the last member
                self._ended = True
                return
            self._members = isal_zlib.decompressobj(wbits=31)
            self._member_offset, self._member_bytes = self.position - len(data), 0
        try:
            self._held = self._members.decompress(data, size)
        except Exception:  # isal raises an error class of its own
            self._ended = True
            try:
                self._held, place, problem = _inflate_to_damage(self._file, self._member_offset, self._member_bytes)
            except OSError as error:
                place, problem = self.position, str(error)
            where, values = ("before", ", so values may be wrong") if problem == _CHECKSUM else ("at", "")
            self.damage = f"the gzip data is damaged {where} byte {place} of the file ({problem}){values}"
            return
        self._member_bytes += len(self._held)
        if not data and not self._held and not self._members.eof:
            self._ended = True
            self.damage = f"the gzip data ends early, at byte {self.position} of the file"


def _inflate_to_damage(file: BufferedReader, start: int, skip: int) -> tuple[bytes, int, str]:
    """Inflate a member again, to get what the inflater held back in the call that failed.

    Small steps find the call that fails; its input is then inflated byte by byte.

    Args:
        file: The file, anywhere.
        start: Where the member starts in it.
        skip: Inflated bytes of it that are known already.

    Returns:
        The inflated bytes after those, the byte of the file at which the damage shows, and what it is.
    """
    file.seek(start)
    inflater: Any = zlib.decompressobj(wbits=31)
    place = start
    found: list[bytes] = []
    held = 0
    while held < _MOST_BYTES and (data := file.read(_STEP_BYTES)):
        before = inflater.copy()
        try:
            text = inflater.decompress(data)
        except zlib.error:
            text, good, problem = _bytewise(before, data)
            return b"".join([*found, text[skip:]]), place + good, problem
        found.append(text[skip:])
        held += len(found[-1])
        skip = max(0, skip - len(text))
        place += len(data)
        if inflater.eof:
            break
    return b"".join(found), place, "its blocks contradict each other"


def _bytewise(inflater: Any, data: bytes) -> tuple[bytes, int, str]:
    """Inflate to the first byte that fails: the text, the number of good bytes and the problem."""
    found = []
    for at in range(len(data)):
        try:
            found.append(inflater.decompress(data[at : at + 1]))
        except zlib.error as error:
            return b"".join(found), at, str(error).rpartition(": ")[2]
    return b"".join(found), len(data), "unknown"


def open_stream(path: Path) -> ByteStream:
    """Open a trace file; gzip is recognised by its first bytes, not by its name.

    Raises:
        UnreadableInput: If the file cannot be opened.
    """
    try:
        file = path.open("rb")
        magic = file.read(2)
        file.seek(0)
    except OSError as error:
        raise UnreadableInput(path, str(error.strerror or error), "Check the path and its permissions.") from error
    return (GzipStream if magic == GZIP_MAGIC else ByteStream)(file)
