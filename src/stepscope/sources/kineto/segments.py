"""A trace in chunks of time, so that memory holds one chunk and not the trace.

Host events belong where they start, device work where it was launched. What is still open at the end of a chunk
goes on into the next one and becomes rows where it is over, so the rows are those of the whole trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import HOST_CLASSES, event_frame
from stepscope.sources.matching import first_match
from stepscope.sources.spool import Spool, quantiles, share_out

SEGMENT_ROWS = 100_000
"""About as many events make a segment; its tree and rows take some 50 MB."""

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
            frames = [carried[name]] if name in carried else []
            for frame in self.parts[name]:
                first, self.next_slice = self.next_slice, self.next_slice + frame.height
                numbers = pl.int_range(first, self.next_slice, dtype=pl.Int64, eager=True).alias("slice")
                frames.append(frame.with_columns(numbers, spent_ns=pl.lit(0, pl.Int64)))
            self.parts[name] = [pl.concat(frames, rechunk=True)] if frames else []

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
        return pl.concat(frames, rechunk=True)


def segments(events: Events, scratch: Callable[[], Path]) -> Iterator[Segment]:
    """The segments of a trace in order of time; the (complete) events are used up."""
    classes = (*_TIMED, "device")
    count = sum(events.rows(name) for name in classes) // SEGMENT_ROWS
    cuts = quantiles((frame for name in classes for frame in events.frames(name, ["start_ns"])), "start_ns", count)
    if cuts.is_empty():
        yield Segment({name: list(events.taken(name)) for name in classes}, None)
        return
    spool: Spool[tuple[int, str]] = Spool(scratch)
    _share_out_device(events, cuts, spool, scratch)
    for name in _TIMED:
        for frame in events.taken(name):
            share_out(frame, cuts.search_sorted(frame["start_ns"], side="right"), name, spool)
    for number, end in enumerate([*cuts.to_list(), None]):
        yield Segment({name: list(spool.taken((number, name))) for name in classes}, end)


def _share_out_device(
    events: Events, cuts: pl.Series, spool: Spool[tuple[int, str]], scratch: Callable[[], Path]
) -> None:
    """Put device work where its launch is: joined a chunk of the correlations at a time, for they rise with time."""
    for launches, frames in _joinable(events, scratch):
        for frame in frames:
            launch = first_match(frame["correlation"], launches["correlation"])
            launched = launches["start_ns"].gather(launch)
            times = launched.zip_with(launched.is_not_null(), frame["start_ns"])
            share_out(frame, cuts.search_sorted(times, side="right"), "device", spool)


def _joinable(events: Events, scratch: Callable[[], Path]) -> Iterator[tuple[pl.DataFrame, Iterable[pl.DataFrame]]]:
    """Launches with the device work that they may belong to."""
    bounds = quantiles(events.frames("runtime", [*_JOINED]), "correlation", 1 + events.rows("runtime") // _JOINED_ROWS)
    none = pl.DataFrame(schema=dict.fromkeys(_JOINED, pl.Int64))
    made = (frame.filter(pl.col("correlation") > 0) for frame in events.frames("runtime", [*_JOINED]))
    if bounds.is_empty():
        yield pl.concat([none, *made]), events.taken("device")
        return
    joining: Spool[tuple[int, str]] = Spool(scratch)
    for launches in made:
        share_out(launches, bounds.search_sorted(launches["correlation"]), "launch", joining)
    for frame in events.taken("device"):
        share_out(frame, bounds.search_sorted(frame["correlation"].fill_null(0)), "device", joining)
    for number in range(len(bounds) + 1):
        yield pl.concat([none, *joining.taken((number, "launch"))]), joining.taken((number, "device"))
