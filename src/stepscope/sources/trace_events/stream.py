"""Bytes of a trace file, plain or gzip, in pieces."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from stepscope.errors import UnreadableInput
from stepscope.sources.trace_events.damaged_gzip import CHECKSUM, inflate_to_damage

GZIP_MAGIC = b"\x1f\x8b"
_READ_BYTES = 1 << 20


class ByteStream(Protocol):
    """A file as the chunker reads it."""

    damage: str | None
    """Why the stream ended early, if it did."""

    @property
    def position(self) -> int:
        """Bytes of the file that were read."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end."""

    def close(self) -> None:
        """Close the file."""


class PlainStream:
    """A file that is not compressed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            self.damage = f"reading failed at byte {self._file.tell()} ({error})"
            return b""

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


class GzipStream:
    """A gzip file of one or more members. A cut or damaged one gives what can be inflated, then ends with `damage`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._members = _inflater()
        self._offset = 0
        self._member_offset = 0
        """Where the current member starts in the file."""
        self._member_bytes = 0
        """How much of it was inflated."""
        self._ended = False
        self._held = b""
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        while not self._held and not self._ended:
            self._fill(size)
        out, self._held = self._held[:size], self._held[size:]
        return out

    def _fill(self, size: int) -> None:
        """Inflate the next piece into `_held`; it may stay empty."""
        data = self._members.unconsumed_tail or self._members.unused_data
        data = data or self._next()
        if self._members.eof:
            if not data.startswith(GZIP_MAGIC):  # the end, or padding after the last member
                self._ended = True
                return
            self._members = _inflater()
            self._member_offset, self._member_bytes = self._offset - len(data), 0
        try:
            self._held = self._members.decompress(data, size)
        except Exception:  # isal and zlib raise their own error classes
            self._ended = True
            try:
                self._held, place, problem = inflate_to_damage(self._file, self._member_offset, self._member_bytes)
            except OSError as error:
                place, problem = self._offset, str(error)
            self.damage = f"the gzip data is damaged at byte {place} of the file ({problem})"
            if problem == CHECKSUM:
                self.damage = (
                    f"the gzip data is damaged before byte {place} of the file ({problem}), so values may be wrong"
                )
            return
        self._member_bytes += len(self._held)
        if not data and not self._held and not self._members.eof:
            self._ended = True
            self.damage = f"the gzip data ends early, at byte {self._offset} of the file"

    def _next(self) -> bytes:
        try:
            data = self._file.read(_READ_BYTES)
        except OSError:
            data = b""
        self._offset += len(data)
        return data

    @property
    def position(self) -> int:
        return self._offset

    def close(self) -> None:
        self._file.close()


class _Inflater(Protocol):
    eof: bool
    unconsumed_tail: bytes
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def _inflater() -> _Inflater:
    try:
        from isal import isal_zlib  # noqa: PLC0415 - needs a wheel for the platform

        return cast("_Inflater", isal_zlib.decompressobj(wbits=31))
    except ImportError:
        return cast("_Inflater", zlib.decompressobj(wbits=31))


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
    return GzipStream(file) if magic == GZIP_MAGIC else PlainStream(file)
