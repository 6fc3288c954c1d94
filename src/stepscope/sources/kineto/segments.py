"""A trace in chunks of time, so that memory holds one chunk and not the trace.

Host events belong where they start, device work where it was launched. What is still open at the end of a chunk
goes on into the next one and becomes rows where it is over, so the rows are those of the whole trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.cutting import Bounds, Chunks
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import HOST_CLASSES, event_frame
from stepscope.sources.matching import first_match
from stepscope.sources.spool import compacted, quantiles, stacked

SEGMENT_ROWS = 200_000
"""About as many events make a segment; its tree and rows take some 100 MB."""

_TIMED = (*HOST_CLASSES, "device_annotation", "memory")
_ADDED = {"place": pl.Int32, "slice": pl.Int64, "spent_ns": pl.Int64}
"""What ranges of the host have in addition to what was recorded of them."""
_JOINED = ("start_ns", "correlation")
_JOINED_ROWS = 1_000_000
"""About as many launches are joined to their device work at a time."""


@dataclass
class Segment:
    """The events of one chunk.

    Args:
        parts: The frames of each class.
        end_ns: Where the next chunk begins; None for the last one.
    """

    parts: dict[str, list[pl.DataFrame]]
    end_ns: int | None
    first_slice: int = 0
    """Number of its first new range in `slices`."""
    next_slice: int = 0
    """Number behind its last new range."""

    def begin(self, carried: Mapping[str, pl.DataFrame], first_slice: int) -> None:
        """Give ranges of the host their number in `slices` and the `spent_ns` of their children so far.

        Args:
            carried: Ranges of earlier chunks that are not over, by class; they have both, and come first.
            first_slice: Number of the first new range; classes are numbered one behind the other.
        """
        self.first_slice = self.next_slice = first_slice
        for name in HOST_CLASSES:
            frames = [compacted(carried[name])] if name in carried else []
            for frame in self.parts[name]:
                first, self.next_slice = self.next_slice, self.next_slice + frame.height
                numbers = pl.int_range(first, self.next_slice, dtype=pl.Int64, eager=True).alias("slice")
                spent = pl.zeros(frame.height, dtype=pl.Int64, eager=True).alias("spent_ns")
                frames.append(frame.hstack([numbers, spent]))
            self.parts[name] = [stacked(frames, rechunk=True)] if frames else []

    def rows(self, name: str) -> int:
        """How many rows a class has, with those carried over."""
        return sum(frame.height for frame in self.parts[name])

    def whole(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """All rows of a class in one frame, those carried over first."""
        if not self.parts[name]:
            none = event_frame(name, pl.DataFrame()).with_columns(
                pl.lit(None, kind).alias(c) for c, kind in _ADDED.items()
            )
            return none.select(columns or pl.all())
        frames = [frame if columns is None else frame.select(columns) for frame in self.parts[name]]
        return stacked(frames, rechunk=True)


def segments(events: Events, scratch: Callable[[], Path]) -> Iterator[Segment]:
    """The segments of a trace in order of time; the (complete) events are used up."""
    classes = (*_TIMED, "device")
    count = sum(events.rows(name) for name in classes) // SEGMENT_ROWS
    spans: dict[str, list[tuple[Any, Any, bool]]] = {name: [] for name in classes}

    def starts() -> Iterator[pl.DataFrame]:
        for name in classes:
            for frame in events.frames(name, ["start_ns"]):
                times = frame["start_ns"]
                spans[name].append((times.min(), times.max(), times.null_count() > 0))
                yield frame

    cuts = quantiles(starts(), "start_ns", count)
    if cuts.is_empty():
        yield Segment({name: _joined(events.taken(name)) for name in classes}, None)
        return

    def number(_: int, frame: pl.DataFrame) -> pl.Series:
        return _numbers(cuts, frame["start_ns"] + events.base_ns)

    chunks = {"device": _device_chunks(events, cuts, scratch)}
    for name in _TIMED:
        bounds = [_bounds(cuts, *span) for span in spans[name]]
        chunks[name] = Chunks(events.taken_parts(name), bounds, number, scratch)
    for place, end in enumerate([*cuts.to_list(), None]):
        yield Segment({name: _joined(map(events.dated, chunks[name].take(place))) for name in classes}, end)


def _bounds(cuts: pl.Series, first_ns: int | None, last_ns: int | None, has_others: bool) -> Bounds | None:
    if first_ns is None or last_ns is None:
        return None
    first, last = _numbers(cuts, pl.Series([first_ns, last_ns]))
    return Bounds(first, last, has_others)


def _joined(frames: Iterable[pl.DataFrame]) -> list[pl.DataFrame]:
    """All rows in one frame, if there are any."""
    found = list(frames)
    return [stacked(found)] if found else []


def _numbers(cuts: pl.Series, times: pl.Series) -> pl.Series:
    """The segment of each time; null if there is none."""
    numbers: pl.Series = cuts.search_sorted(times, side="right")
    return (
        numbers.zip_with(times.is_not_null(), pl.Series([None], dtype=numbers.dtype)) if times.null_count() else numbers
    )


def _device_chunks(events: Events, cuts: pl.Series, scratch: Callable[[], Path]) -> Chunks:
    """Device work in the segments of its launches."""
    numbers: list[pl.Series] = []
    for frames in _groups(events.frames("device", [*_JOINED])):
        made = _numbers(cuts, _launched(pl.concat(frames), events))
        for frame in frames:
            numbers.append(made.head(frame.height))
            made = made.slice(frame.height)
    bounds = [Bounds(*map(int, (own.min(), own.max()))) for own in numbers]  # type: ignore[arg-type]
    return Chunks(events.taken_parts("device"), bounds, lambda place, _: numbers[place], scratch)


def _launched(work: pl.DataFrame, events: Events) -> pl.Series:
    """When each piece of device work was launched, or else started."""
    launched = pl.Series("start_ns", [None], dtype=pl.Int64).new_from_index(0, work.height)
    for frames in _groups(events.frames("runtime", [*_JOINED])):
        if launched.null_count():  # the first launch of a correlation counts
            calls = pl.concat(frames)
            calls = calls.filter(calls["correlation"] > 0)
            found = calls["start_ns"].gather(first_match(work["correlation"], calls["correlation"]))
            launched = launched.zip_with(launched.is_not_null(), found)
    moments: pl.Series = launched.zip_with(launched.is_not_null(), work["start_ns"])
    return moments


def _groups(frames: Iterable[pl.DataFrame]) -> Iterator[list[pl.DataFrame]]:
    """Frames in groups of about as many rows as are joined at a time."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(one.height for one in held) >= _JOINED_ROWS:
            yield held
            held = []
    if held:
        yield held
