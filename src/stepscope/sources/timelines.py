"""What viewers of timelines show as zero: the same for all sources that read trace files."""

from __future__ import annotations

from pathlib import Path

from stepscope.paths import shown
from stepscope.sources.base import Sink
from stepscope.tables import TIMELINES


def write_timeline(file: Path, first_ns: int | None, shift_ns: int, sink: Sink) -> None:
    """Write where a trace file begins.

    Args:
        file: The file.
        first_ns: Start of its first event as the file states it; None if it has no event.
        shift_ns: What is added to the times of the file elsewhere: its base, the offset of its clock.
        sink: Takes the row.
    """
    if first_ns is not None:
        sink.write(TIMELINES, TIMELINES.unchecked(file=[shown(file)], zero_ns=[first_ns + shift_ns]))
