"""Telling files that the Perfetto UI opens as they are from recordings that are turned into a timeline first."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import Literal

from stepscope.errors import UnreadableInput

TimelineKind = Literal["perfetto", "chrome"]

HEAD_BYTES = 1 << 16
"""How much of a file is looked at. Kineto writes about a kilobyte of properties before its first event."""

_GZIP = b"\x1f\x8b"
_EVENT = re.compile(rb'"ph"\s*:\s*"')
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')


def timeline_kind(path: Path) -> TimelineKind | None:
    """What kind of timeline a file is: Perfetto protobuf or Chrome JSON, either of them also packed by gzip.

    None means neither: a directory, or a recording of another kind.

    Raises:
        UnreadableInput: If the file does not exist, cannot be read, or is empty.
    """
    if path.is_dir():
        return None
    head = _head(path)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if (text[:1] == b"{" and _EVENTS.search(text)) or (text[:1] == b"[" and _EVENT.search(text)):
        return "chrome"
    return "perfetto" if _starts_with_packets(head) else None


def _head(path: Path) -> bytes:
    """The beginning of a file's content, unpacked."""
    try:
        if not path.is_file():
            raise UnreadableInput(
                path,
                "is no regular file" if path.exists() else "there is no such file or directory",
                "Give a timeline file, or a trace file or directory that stepscope reads",
            )
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(_GZIP):
            with gzip.open(path) as file:
                head = file.read(HEAD_BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableInput(
            path, f"cannot be unpacked by gzip ({error})", "Copy it again, or record it again"
        ) from error
    except OSError as error:
        raise UnreadableInput(path, error.strerror or str(error), "Check the path and its permissions") from error
    if not head:
        raise UnreadableInput(path, "is empty", "Record it again, or give another file")
    return head


def _starts_with_packets(head: bytes) -> bool:
    """Whether a file begins as a Perfetto trace does: with a packet whose fields can be told apart.

    A trace is a message whose field 1 is repeated, a packet (perfetto/protos/perfetto/trace/trace.proto): a byte 0x0a,
    the packet's size as a varint, and the packet's own fields, each after a key of number * 8 + wire type.
    """
    try:
        size, at = _varint(head, 1)
        end = at + size
        while at < end:
            at = _after_field(head, at)
    except _EndOfHead:
        return head.startswith(b"\x0a")
    except ValueError:
        return False
    return head.startswith(b"\x0a") and size > 0 and at == end


class _EndOfHead(Exception):
    """What is looked at ends within a packet."""


def _after_field(data: bytes, at: int) -> int:
    """Where the field ends that begins at a place."""
    key, at = _varint(data, at)
    wire = key & 7
    if key >> 3 == 0 or wire not in (0, 1, 2, 5):
        raise ValueError("no key of a field")
    if wire == 0:
        return _varint(data, at)[1]
    if wire == 2:
        length, at = _varint(data, at)
        return at + length
    return at + (8 if wire == 1 else 4)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends."""
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise _EndOfHead
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a varint of more than ten bytes")
