"""The first bytes of a file, inflated where needed: enough to recognise it, whatever its size."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast

import msgspec
from isal import isal_zlib

from stepscope.errors import UnreadableInput

HEAD_BYTES = 64 << 10
_PEEK_BYTES = 512
_PLACE = re.compile(r"\(byte (\d+)\)")
_CUT_BYTES = 8
_SLICE_BYTES = 4 << 10
_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_PARQUET = b"PAR1"
_PACKED = b"stepscope packed"
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
"""Pickles of the protocols 2 to 5, which only a reader of plain data ever reads."""
_BOM = b"\xef\xbb\xbf"
_GZIP_ERROR = cast("type[Exception]", isal_zlib.error)  # its stub calls the class an instance


def read_head(file: Path) -> bytes | None:
    """The first 64 KiB of a file that may be a recording: JSON, SQLite, Parquet, pickle, CSV, gzip or not; or packed.

    Returns:
        The bytes, or None for a file of another kind, of which little is read.

    Raises:
        UnreadableInput: If it is gzip and damaged from the start.
        OSError: If it cannot be read.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        head = os.read(descriptor, _PEEK_BYTES)
        packed = head.startswith(_GZIP)
        if not packed and not _may_be_ours(file.name, head):
            return None
        while len(head) < HEAD_BYTES and (more := os.read(descriptor, HEAD_BYTES - len(head))):
            head += more
    finally:
        os.close(descriptor)
    if packed:
        head = _inflate(file, head)
        if not _may_be_ours(file.name.removesuffix(".gz"), head):
            return None
    return head


def is_json(head: bytes) -> bool:
    """Whether a file with this head may be JSON."""
    return head.removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")


def broken_at(head: bytes) -> int | None:
    """The byte at which a head stops being valid JSON; None if it is the start of JSON."""
    from stepscope.sources.trace_events.salvage import cleaned  # noqa: PLC0415 - only for files that no reader takes

    start = len(head) - len(head.removeprefix(_BOM))
    try:
        msgspec.json.decode(cleaned(head[start:]))
    except msgspec.DecodeError as error:
        place = _PLACE.search(str(error))
        cut = len(head) == HEAD_BYTES
        if place is None or (cut and int(place[1]) > len(head) - _CUT_BYTES):
            return None  # only its end is missing
        return start + int(place[1])
    except RecursionError:
        return None
    return None


def _may_be_ours(name: str, head: bytes) -> bool:
    return is_json(head) or head.startswith((_SQLITE, _PARQUET, _PACKED, *_PICKLES)) or name.lower().endswith(".csv")


def _inflate(file: Path, packed: bytes) -> bytes:
    """Inflate what can be; a stream that ends early or is damaged later on still has a head."""
    head = b""
    inflater = isal_zlib.decompressobj(wbits=31)
    try:
        for at in range(0, len(packed), _SLICE_BYTES):
            piece = packed[at : at + _SLICE_BYTES]
            while piece and len(head) < HEAD_BYTES:
                head += inflater.decompress(piece, HEAD_BYTES - len(head))
                if not inflater.eof:
                    break
                piece = inflater.unused_data.lstrip(b"\0")
                inflater = isal_zlib.decompressobj(wbits=31)
    except _GZIP_ERROR as error:
        if not head:
            remedy = "Copy the file again from the machine that recorded it"
            raise UnreadableInput(file, f"damaged gzip at its start ({error})", remedy) from error
    if not head:
        remedy = "Record again, or copy the file again if it is truncated"
        raise UnreadableInput(file, "gzip that ends before any data", remedy)
    return head
