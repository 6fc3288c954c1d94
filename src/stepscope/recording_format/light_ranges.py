"""Ranges from light records: the markers of each range put together.

Records may be ours or TaskD's: of a range timed on the host only there are two markers, of others four, in any order;
lines may be damaged or cut off, and a restarted process uses ids again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import msgspec

from stepscope.recording_format.light import Flag, RecordKind, Source

LONGEST_LINE = 1 << 20
"""Longer lines count as damaged."""
MOST_OPEN = 10_000
"""Ranges that wait for a marker; beyond, the oldest ones are given as they are."""
LONGEST_NAME = 4096
"""Characters of a name that are kept."""

_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class LightRange(NamedTuple):
    """A range as stored; times in ns since the epoch.

    Args:
        place: Position of its first marker among all markers read so far.
        domain: `default`, `communication`, or another tool's.
        process: Id of the process that recorded it.
        thread: Native id.
        end_ns: None if its end was not recorded.
        device: Index of the device, with `stream`; None if it was not timed there.
    """

    place: int
    name: str
    domain: str
    process: int
    thread: int
    start_ns: int
    end_ns: int | None
    device_start_ns: int | None = None
    device_end_ns: int | None = None
    device: int | None = None
    stream: int | None = None


@dataclass
class Problems:
    """What could not be read, by number."""

    bad_lines: int = 0
    unended: int = 0
    """Ranges without an end, as when a process is killed."""
    startless: int = 0
    """Ends without a start, e.g. since the file with the start was deleted by ageing."""
    others: int = 0
    """Records other than markers, and instants, which are passed over."""


@dataclass
class WholeLines:
    """Cuts a file that is read in blocks into whole lines. One that is too long is counted as bad, and passed over.

    Args:
        problems: Counts it.
        skipping: Whether reading begins within a line that is to be passed over.
    """

    problems: Problems
    skipping: bool = False
    rest: bytes = b""
    """A line of which the end has not come yet."""

    def take(self, block: bytes) -> bytes:
        """The whole lines at the end of which a block has come; the rest of it waits."""
        if self.skipping:
            _, end, block = block.partition(b"\n")
            self.skipping = not end
        text = self.rest + block
        cut = text.rfind(b"\n") + 1
        self.rest = text[cut:]
        if len(self.rest) > LONGEST_LINE:
            self.rest, self.skipping = b"", True
            self.problems.bad_lines += 1
        return text[:cut]


class _Thread(msgspec.Struct):
    ProcessId: _Number = 0
    ThreadId: _Number = 0


class _Stream(msgspec.Struct):
    DeviceId: _Number = 0
    StreamId: _Number = 0


class _Object(msgspec.Struct):
    Pt: _Thread = msgspec.field(default_factory=_Thread)
    Ds: _Stream = msgspec.field(default_factory=_Stream)


class _Marker(msgspec.Struct):
    Kind: int
    Flag: int = 0
    SourceKind: int = 0
    Timestamp: _Number = 0
    Id: int = 0
    MsptiObjectId: _Object = msgspec.field(default_factory=_Object)
    Name: str = ""
    Domain: str = ""


_decoder = msgspec.json.Decoder(_Marker)
_STARTS = Flag.HOST_START | Flag.START
_ENDS = Flag.HOST_END | Flag.END
_TIMED = Flag.START | Flag.END


@dataclass
class _Open:
    """A range of which not all markers have come."""

    place: int
    name: str = ""
    domain: str = ""
    process: int = 0
    thread: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    device_start_ns: int | None = None
    device_end_ns: int | None = None
    device: int | None = None
    stream: int | None = None
    timed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        if self.start_ns is None or self.end_ns is None:
            return False
        return not self.timed or (self.device_start_ns is not None and self.device_end_ns is not None)


@dataclass
class Assembler:
    """Puts markers together as they come.

    Args:
        most_open: Ranges that wait for a marker at the most.
    """

    most_open: int = MOST_OPEN
    problems: Problems = field(default_factory=Problems)
    _open: dict[int, _Open] = field(default_factory=dict)
    _read: int = 0

    def feed(self, lines: bytes) -> Iterator[LightRange]:
        """The ranges that whole lines complete, in the order of their last markers. Bad and blank lines are passed
        over."""
        for marker in self._markers(lines):
            if not marker.Flag & (_STARTS | _ENDS) or marker.Kind != RecordKind.MARKER or not marker.Timestamp:
                self.problems.others += 1
                continue
            self._read += 1
            known = self._open.get(marker.Id)
            if known is not None and _is_taken(known, marker):
                yield from self._given(self._open.pop(marker.Id))
                known = None
            if known is None:
                known = self._open[marker.Id] = _Open(self._read)
                if len(self._open) > self.most_open:
                    yield from self._given(self._open.pop(next(iter(self._open))))
            _add(known, marker)
            if known.is_complete:
                yield from self._given(self._open.pop(marker.Id))

    def finish(self) -> Iterator[LightRange]:
        """What is left, as far as it is known."""
        for known in self._open.values():
            yield from self._given(known)
        self._open.clear()

    def _markers(self, lines: bytes) -> list[_Marker]:
        try:
            return _decoder.decode_lines(lines)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return list(self._one_by_one(lines))

    def _one_by_one(self, lines: bytes) -> Iterator[_Marker]:
        for line in lines.split(b"\n"):
            if line and not line.isspace():
                try:
                    yield _decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.problems.bad_lines += 1

    def _given(self, known: _Open) -> Iterator[LightRange]:
        if known.start_ns is None:
            self.problems.startless += 1
            return
        self.problems.unended += known.end_ns is None
        of_device: tuple[int | None, ...] = ()
        if known.device_start_ns is not None and known.device_end_ns is not None:
            of_device = (known.device_start_ns, known.device_end_ns, known.device, known.stream)
        host = (known.place, known.name, known.domain, known.process, known.thread, known.start_ns, known.end_ns)
        yield LightRange(*host, *of_device)


def _is_taken(known: _Open, marker: _Marker) -> bool:
    """Whether a marker of this kind has come already, or one of another process, so that the id is used again."""
    starts = bool(marker.Flag & _STARTS)
    if marker.SourceKind == Source.DEVICE:
        return (known.device_start_ns if starts else known.device_end_ns) is not None
    has_host = known.start_ns is not None or known.end_ns is not None
    other = has_host and known.process != marker.MsptiObjectId.Pt.ProcessId
    return other or (known.start_ns if starts else known.end_ns) is not None


def _add(known: _Open, marker: _Marker) -> None:
    known.timed |= bool(marker.Flag & _TIMED)
    starts = bool(marker.Flag & _STARTS)
    if marker.SourceKind == Source.DEVICE:
        known.device, known.stream = marker.MsptiObjectId.Ds.DeviceId, marker.MsptiObjectId.Ds.StreamId
        if starts:
            known.device_start_ns = marker.Timestamp
        else:
            known.device_end_ns = marker.Timestamp
        return
    known.process = marker.MsptiObjectId.Pt.ProcessId
    if starts:
        known.name, known.domain = marker.Name[:LONGEST_NAME], marker.Domain[:LONGEST_NAME]
        known.start_ns, known.thread = marker.Timestamp, marker.MsptiObjectId.Pt.ThreadId
    else:
        known.end_ns = marker.Timestamp
