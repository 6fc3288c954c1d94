"""Finding the array of events in a trace and cutting it into chunks between events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from mmap import mmap
from pathlib import Path
from typing import Any

import msgspec

from stepscope.errors import UnreadableInput
from stepscope.sources.trace_events.salvage import BOUNDARY, DECODE_ERRORS, TOKEN, cleaned
from stepscope.sources.trace_events.stream import ByteStream

CHUNK_BYTES = 4 << 20
MAX_EVENT_BYTES = 64 << 20
MAX_HEADER_BYTES = 16 << 20
"""Limit of the keys before the events, and of those after them: lists of all groups of a job take a few MB. In memory,
they may take twenty times as much."""
_CLEANED_BYTES = 4 << 20
"""Up to this size, keys that are not clean JSON are repaired and read, which takes forty times as much memory."""

_ARRAY_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOM = b"\xef\xbb\xbf"
_TAIL_BYTES = 1 << 16
_EVENT_BYTES = 1 << 12
"""Most events are shorter than that."""
_FIRST_BYTES = 1 << 16
"""Few traces have more in front of their events. What is read of the events themselves is copied."""
_READ_BYTES = 1 << 20
_MOST_TRIES = 100
"""Keys named `traceEvents` before which everything is decoded; before further ones, only brackets are counted."""
_ADVICE = "Give a trace that torch.profiler or another writer of Chrome traces made."


@dataclass(frozen=True)
class Chunk:
    """Some events as text, cut between two of them; the last one goes to the end of the file."""

    offset: int
    """Where it starts in the (inflated) file."""
    text: bytes | memoryview
    """A view is valid until the chunker gets the chunk back."""
    last: bool
    gap: bytes = b""
    """The text between the previous chunk and this one: a comma and space."""


class Chunker:
    """Reads a trace's header, then yields its events as chunks.

    Args:
        stream: The file, at its start.
        path: Its name, for errors.
        chunk_bytes: Size of a chunk, roughly.

    Raises:
        UnreadableInput: If there is no array of events.
    """

    def __init__(self, stream: ByteStream, path: Path, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._stream = stream
        self._path = path
        self._chunk_bytes = max(1, chunk_bytes)
        self.is_list = False
        """True if the file is a bare list of events."""
        self.header: dict[str, Any] = {}
        """The keys before the events."""
        self.header_problem: str | None = None
        """Why these keys cannot be read; None if they can."""
        self._offset = 0
        self._held = b""
        self._rooms: list[mmap] = []
        self._find_array()

    def _find_array(self) -> None:
        text, searched, tries = b"", 0, 0
        depth = _Depth()
        while True:
            more = self._stream.read(_READ_BYTES if text else _FIRST_BYTES)
            text += more
            start = len(text) - len(text.removeprefix(_BOM).lstrip(b" \t\r\n"))
            if start == len(text):
                if not more or len(text) > MAX_HEADER_BYTES:
                    raise UnreadableInput(self._path, self._stream.damage or "the file is empty", _ADVICE)
                continue
            if text[start] == 0x5B:  # [
                self.is_list = True
                self._offset, self._held = start + 1, text[start + 1 :]
                return
            if text[start] != 0x7B:  # {
                raise UnreadableInput(self._path, f"not JSON at byte {start}", _ADVICE)
            for match in _ARRAY_START.finditer(text, max(start, searched - 64)):
                tries += 1
                members = text[start : match.start()]  # such as `{"a": 1, `
                header, problem = _object(b"", members, b'"":[]}') if tries <= _MOST_TRIES else (None, None)
                if header is not None or depth.at(text, match.start()) == 1:
                    self.header, self.header_problem = header or {}, problem
                    self._offset, self._held = match.end(), text[match.end() :]
                    return
            searched = len(text)
            if not more or len(text) > MAX_HEADER_BYTES:
                damage = self._stream.damage
                why = f"it has no list `traceEvents`{'; ' + damage if damage else ''}"
                raise UnreadableInput(self._path, why, _ADVICE)

    def take_back(self, chunk: Chunk) -> None:
        """Use the memory of a chunk for a later one: fresh memory costs as much as reading into it."""
        if isinstance(chunk.text, memoryview) and isinstance(chunk.text.obj, mmap):
            self._rooms.append(chunk.text.obj)

    def __iter__(self) -> Iterator[Chunk]:
        gap = b""
        while True:
            held = len(self._held)
            if held < self._chunk_bytes - _TAIL_BYTES:
                memory = self._rooms.pop() if self._rooms else mmap(-1, self._chunk_bytes)
                room = memoryview(memory)
                room[:held] = self._held
                filled = held
                while filled < len(room) and (count := self._stream.read_into(room[filled:])):
                    filled += count
                if filled < len(room):  # the end of the file
                    yield Chunk(self._offset, room[:filled], last=True, gap=gap)
                    return
                cut = last_boundary(room[held:])
                if cut is not None:  # the usual case, without copying the text twice
                    end, start = (held + place for place in cut)
                    self._held, next_gap = bytes(room[start:]), bytes(room[end:start])
                    yield Chunk(self._offset, room[:end], last=False, gap=gap)
                    gap = next_gap
                    self._offset += start
                    continue
                self._held = bytes(room[:filled])
                self._rooms.append(memory)
            size = self._chunk_bytes
            cut = last_boundary(self._filled(size))
            while cut is None and size < MAX_EVENT_BYTES and len(self._held) >= size:
                size *= 2
                cut = last_boundary(self._filled(size))
            if len(self._held) < size or cut is None:
                if len(self._held) >= MAX_EVENT_BYTES:
                    self._stream.damage = f"no event ends within {size} bytes from byte {self._offset}"
                yield Chunk(self._offset, self._held, last=True, gap=gap)
                return
            end, start = cut
            yield Chunk(self._offset, self._held[:end], last=False, gap=gap)
            gap = self._held[end:start]
            self._offset += start
            self._held = self._held[start:]

    def _filled(self, size: int) -> bytes:
        """The next `size` bytes, which stay held; fewer at the end of the file."""
        while len(self._held) < size and (more := self._stream.read(size - len(self._held))):
            self._held += more
        return self._held[:size]


def last_boundary(text: bytes | memoryview) -> tuple[int, int] | None:
    """End of an event and start of the next one, near the end of `text`."""
    size = _EVENT_BYTES
    while True:
        start = max(0, len(text) - size)
        cuts = [(found.start() + 1, found.end()) for found in BOUNDARY.finditer(text, start)]
        if cuts:
            return cuts[-1]
        if start == 0:
            return None
        size *= 16


def trailing_members(text: bytes) -> dict[str, Any] | None:
    """The keys after the array of events, e.g. `, "traceName": "x"}`; None if the text cannot be read."""
    return _object(b'{"":[]', text, b"")[0] if text.strip() else {}


def _object(before: bytes, text: bytes, after: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """The object that `text` completes, without its empty key; if it cannot be read, None and why.

    A value that is NaN or infinite is the text `NaN`, so that it is not taken for one that is missing.
    """
    problem = None
    repaired = partial(cleaned, not_a_number=b'"NaN"')
    for clean in (bytes, repaired) if len(text) <= _CLEANED_BYTES else (bytes,):
        try:
            found = msgspec.json.decode(before + clean(text) + after)
        except RecursionError:
            problem = "nested too deeply"
        except DECODE_ERRORS:
            problem = problem or "not valid JSON"
        else:
            if isinstance(found, dict):
                found.pop("", None)
                return found, None
    return None, problem


class _Depth:
    """Counts brackets up to places in a growing text, each part of it once."""

    def __init__(self) -> None:
        self._depth = 0
        self._end = 0

    def at(self, text: bytes, place: int) -> int | None:
        """How many objects and lists are open at `place`, which is after the previous one; None in a string."""
        for match in TOKEN.finditer(text, self._end, place):
            self._depth += {0x7B: 1, 0x5B: 1, 0x7D: -1, 0x5D: -1}.get(text[match.start()], 0)
            self._end = match.end()
        return self._depth if text.find(b'"', self._end, place) < 0 else None
