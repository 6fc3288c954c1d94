"""The ranges in record files: markers put together, read in batches whatever the size of the files.

Files may be ours or TaskD's: markers of a range come in any order, lines may be cut off, and ids may be used again by a
restarted process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from stepscope.live.store.files import is_record_name
from stepscope.recording_format.light import Flag, RecordKind, Source

LONGEST_LINE = 1 << 20
"""A longer line is passed over."""
MOST_OPEN = 100_000
"""Ranges that wait for a marker; beyond, the oldest are given as they are."""
SLACK_NS = 60_000_000_000
"""Records are on disk at most this long after what they are about has ended; flushes take 5 to 10 s."""
LONGEST_RANGE_NS = 600_000_000_000
"""A range that is longer may be missed at the end of a window of time."""


class StoredRange(NamedTuple):
    """A range as stored; times in ns since the epoch. An end that is None was not recorded.

    Args:
        domain: `default`, `communication`, or another tool's.
        thread: Native id.
        device: Index of the device, with `stream`; None if it was not timed there.
    """

    name: str
    domain: str
    start_ns: int
    end_ns: int | None
    thread: int
    device_start_ns: int | None = None
    device_end_ns: int | None = None
    device: int | None = None
    stream: int | None = None


@dataclass
class Problems:
    """What could not be read."""

    bad_lines: int = 0
    unended: int = 0
    """Ranges without an end."""
    startless: int = 0
    """Ends without a start, e.g. since the file with the start was deleted by ageing."""


class _Place(msgspec.Struct):
    ProcessId: int = 0
    ThreadId: int = 0


class _Device(msgspec.Struct):
    DeviceId: int = 0
    StreamId: int = 0


class _Object(msgspec.Struct):
    Pt: _Place = msgspec.field(default_factory=_Place)
    Ds: _Device = msgspec.field(default_factory=_Device)


class _Marker(msgspec.Struct):
    """A record of any kind; kernels and calls have Start and End instead of a time stamp."""

    Kind: int
    Flag: int = 0
    SourceKind: int = 0
    Timestamp: int = 0
    Id: int = 0
    MsptiObjectId: _Object | None = None
    Name: str = ""
    Domain: str = ""
    Start: int | None = None
    End: int | None = None
    Pt: _Place | None = None
    Ds: _Device | None = None


_decoder = msgspec.json.Decoder(_Marker)
_STARTS = Flag.HOST_START | Flag.START
_ENDS = Flag.HOST_END | Flag.END
_INSTANTS = Flag.INSTANT | Flag.DEVICE_INSTANT


@dataclass
class _Open:
    """A range of which not all markers have come."""

    name: str = ""
    domain: str = ""
    thread: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    device_start_ns: int | None = None
    device_end_ns: int | None = None
    device: int | None = None
    stream: int | None = None
    on_device: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        host = self.start_ns is not None and self.end_ns is not None
        return host and (not self.on_device or (self.device_start_ns is not None and self.device_end_ns is not None))


def ranges_in(files: Sequence[Path], problems: Problems) -> Iterator[StoredRange]:
    """The ranges in the files of one rank, roughly in the order of their ends; none is dropped.

    Args:
        files: In the order in which they were written.
        problems: Counts what could not be read.
    """
    waiting: dict[int, _Open] = {}
    for marker in _markers(files, problems):
        if marker.Kind != RecordKind.MARKER:
            if marker.Start is not None and marker.End is not None:
                yield _whole(marker)
            continue
        if marker.Flag & _INSTANTS:
            thread = marker.MsptiObjectId.Pt.ThreadId if marker.MsptiObjectId else 0
            yield StoredRange(marker.Name, marker.Domain, marker.Timestamp, marker.Timestamp, thread)
            continue
        known = waiting.get(marker.Id)
        if known is not None and _is_taken(known, marker):
            yield from _given(waiting.pop(marker.Id), problems)
            known = None
        if known is None:
            known = waiting[marker.Id] = _Open()
            if len(waiting) > MOST_OPEN:
                yield from _given(waiting.pop(next(iter(waiting))), problems)
        _add(known, marker)
        if known.is_complete:
            yield from _given(waiting.pop(marker.Id), problems)
    for left in waiting.values():
        yield from _given(left, problems)


def files_for(directory: Path, from_ns: int | None = None, to_ns: int | None = None) -> list[Path]:
    """The record files of a rank, oldest first, that may hold ranges of a window of time."""
    named = sorted(
        (
            each
            for each in directory.iterdir()
            if is_record_name(each.name) and each.is_file() and not each.is_symlink()
        ),
        key=lambda each: int(each.name),
    )
    if from_ns is None and to_ns is None:
        return named
    begins = [_first_ns(file) for file in named]
    kept = []
    for file, first, following in zip(named, begins, [*begins[1:], None], strict=True):
        # all in a file was written before the next one was begun
        last = None if first is None or following is None else max(first, following)
        too_early = from_ns is not None and last is not None and last + SLACK_NS < from_ns
        too_late = to_ns is not None and first is not None and first > to_ns + SLACK_NS + LONGEST_RANGE_NS
        if not too_early and not too_late:
            kept.append(file)
    return kept


def _first_ns(file: Path) -> int | None:
    """The time of the first record of a file; None if it is unknown. Its name tells less: clocks may be set back."""
    with file.open("rb") as lines:
        line = lines.readline(LONGEST_LINE)
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record.Timestamp or record.Start


def _markers(files: Sequence[Path], problems: Problems) -> Iterator[_Marker]:
    for file in files:
        with file.open("rb") as lines:
            while line := lines.readline(LONGEST_LINE):
                if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                    while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                    problems.bad_lines += 1
                    continue
                if line.isspace():
                    continue
                try:
                    yield _decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    problems.bad_lines += 1


def _is_taken(known: _Open, marker: _Marker) -> bool:
    """Whether a marker of this kind has come already, so that the id is used again."""
    device = marker.SourceKind == Source.DEVICE
    starts = bool(marker.Flag & _STARTS)
    if device:
        return (known.device_start_ns if starts else known.device_end_ns) is not None
    return (known.start_ns if starts else known.end_ns) is not None


def _add(known: _Open, marker: _Marker) -> None:
    place = marker.MsptiObjectId or _Object()
    starts = bool(marker.Flag & _STARTS)
    if not starts and not marker.Flag & _ENDS:
        return
    if marker.Flag & (Flag.START | Flag.END):
        known.on_device = True
    if marker.SourceKind == Source.DEVICE:
        known.device, known.stream = place.Ds.DeviceId, place.Ds.StreamId
        if starts:
            known.device_start_ns = marker.Timestamp
        else:
            known.device_end_ns = marker.Timestamp
    elif starts:
        known.name, known.domain = marker.Name, marker.Domain
        known.start_ns, known.thread = marker.Timestamp, place.Pt.ThreadId
    else:
        known.end_ns = marker.Timestamp


def _given(known: _Open, problems: Problems) -> Iterator[StoredRange]:
    """A range as far as it is known; nothing if its start was not recorded."""
    if known.start_ns is None:
        problems.startless += 1
        return
    problems.unended += known.end_ns is None
    on_device = known.device_start_ns is not None and known.device_end_ns is not None
    yield StoredRange(
        known.name,
        known.domain,
        known.start_ns,
        known.end_ns,
        known.thread,
        known.device_start_ns if on_device else None,
        known.device_end_ns if on_device else None,
        known.device if on_device else None,
        known.stream if on_device else None,
    )


def _whole(record: _Marker) -> StoredRange:
    """A kernel or a call, which is one record."""
    start_ns, end_ns = record.Start or 0, record.End or 0
    if record.Ds is not None:
        return StoredRange(
            record.Name, "", start_ns, end_ns, 0, start_ns, end_ns, record.Ds.DeviceId, record.Ds.StreamId
        )
    return StoredRange(record.Name, "", start_ns, end_ns, record.Pt.ThreadId if record.Pt else 0)
