"""Which record files may hold ranges of a window of time, without reading all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stepscope.recording_format.light import is_record_name
from stepscope.sources.base import Input

SLACK_NS = 60_000_000_000
"""Records are on disk at most this long after what they are about has ended; flushes take 5 to 10 s."""
LONGEST_RANGE_NS = 600_000_000_000
"""A range that is longer may be missed at the end of a window of time."""
_TIME = re.compile(rb'"Timestamp"\s*:\s*(\d{1,19})\b')
_LONGEST_LINE = 1 << 20
_TAIL = 1 << 20
"""Bytes at the end of a file in which the newest moment is looked for."""


def within(item: Input, from_ns: int | None, to_ns: int | None) -> Input | None:
    """The same input with those of its record files only that may hold ranges of a window of time; None if none may.

    Args:
        item: An input of light records, with its files in the order in which they were written.
        from_ns, to_ns: Since the epoch; None for no bound.
    """
    records = [file for file in item.files if is_record_name(file.name)]
    kept = files_within(records, from_ns, to_ns)
    sides = (file for file in item.files if file not in records)
    return replace(item, files=(*kept, *sides)) if kept else None


def files_within(files: Sequence[Path], from_ns: int | None, to_ns: int | None) -> list[Path]:
    """The record files of a rank, in the order in which they were written, that may hold ranges of a window of time."""
    if from_ns is None and to_ns is None:
        return list(files)
    begins = [_first_ns(file) for file in files]
    kept = []
    for file, first, following in zip(files, begins, [*begins[1:], None], strict=True):
        # All in a file was written before the next one was begun.
        last = None if first is None or following is None else max(first, following)
        too_early = from_ns is not None and last is not None and last + SLACK_NS < from_ns
        too_late = to_ns is not None and first is not None and first > to_ns + SLACK_NS + LONGEST_RANGE_NS
        if not too_early and not too_late:
            kept.append(file)
    return kept


def newest_ns(files: Sequence[Path]) -> int | None:
    """The newest time in the record files of a rank, since the epoch; None if there is none."""
    found = [_newest_in(file) for file in files[-2:]]
    return max((each for each in found if each is not None), default=None)


def _first_ns(file: Path) -> int | None:
    """The time of the first record of a file; None if it is unknown. Its name tells less: clocks may be set back."""
    try:
        with file.open("rb") as records:
            time = _TIME.search(records.readline(_LONGEST_LINE))
    except OSError:  # the reader reports it
        return None
    return (int(time[1]) or None) if time else None


def _newest_in(file: Path) -> int | None:
    try:
        with file.open("rb") as records:
            size = records.seek(0, 2)
            records.seek(max(size - _TAIL, 0))
            return max((int(time) for time in _TIME.findall(records.read())), default=None)
    except OSError:
        return None
