"""The ranges in record files of one rank, read in blocks whatever the size of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from stepscope.live.store.files import files_in
from stepscope.recording_format.light_ranges import LONGEST_LINE, Assembler, LightRange, WholeLines

BLOCK = 1 << 20
"""Bytes that are read at a time."""
SLACK_NS = 60_000_000_000
"""Records are on disk at most this long after what they are about has ended; flushes take 5 to 10 s."""
LONGEST_RANGE_NS = 600_000_000_000
"""A range that is longer may be missed at the end of a window of time."""


def ranges_in(files: Sequence[Path], assembler: Assembler) -> Iterator[LightRange]:
    """The ranges in the files of one rank, roughly in the order of their ends.

    Args:
        files: In the order in which they were written.
        assembler: A new one; it knows afterwards what could not be read.
    """
    for file in files:
        lines = WholeLines(assembler.problems)
        with file.open("rb") as records:
            while block := records.read(BLOCK):
                yield from assembler.feed(lines.take(block))
        yield from assembler.feed(lines.rest)
    yield from assembler.finish()


def files_for(directory: Path, from_ns: int | None = None, to_ns: int | None = None) -> list[Path]:
    """The record files of a rank, oldest first, that may hold ranges of a window of time."""
    named = files_in(directory)
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


class _Timed(msgspec.Struct):
    """A record, as far as its time matters."""

    Timestamp: int


_decoder = msgspec.json.Decoder(_Timed)


def _first_ns(file: Path) -> int | None:
    """The time of the first record of a file; None if it is unknown. Its name tells less: clocks may be set back."""
    with file.open("rb") as records:
        line = records.readline(LONGEST_LINE)
    try:
        return _decoder.decode(line).Timestamp or None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
