"""`TraceEvents`: a trace file as columns, several chunks at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.present import plural
from stepscope.sources.base import Sink
from stepscope.sources.native import library
from stepscope.sources.trace_events.base import Layout, Place, Problem
from stepscope.sources.trace_events.chunks import CHUNK_BYTES, MAX_HEADER_BYTES, Chunk, Chunker, trailing_members
from stepscope.sources.trace_events.decode import Decoded, EventDecoder
from stepscope.sources.trace_events.salvage import BETWEEN, CUT_OFF
from stepscope.sources.trace_events.stream import open_stream

_UNSEEN = frozenset({"s", "t", "f", "M"})
"""Phases of arrows and labels, which no viewer counts as events of its timeline."""

_LARGE_BYTES = 256 << 20
"""From this (inflated) size on, memory is given back after reading rather than kept for the next trace."""


@dataclass
class TraceEvents:
    """The events of a trace file, plain or gzip, in file order: frames by class, to be iterated once.

    Memory holds a few chunks only.

    Args:
        path: The file: `{"traceEvents": [...], ...}` or a bare list of events.
        layout: Which events are wanted, as which frames.
        sink: It takes the progress and, once all is read, an issue for each kind of damage. As many chunks as it has
            workers are decoded at a time, each by a thread.
        chunk_bytes: Text that is decoded at once, roughly.

    Raises:
        UnreadableInput: While iterating, if the file cannot be opened or holds no list of events.
    """

    path: Path
    layout: Layout
    sink: Sink
    chunk_bytes: int = CHUNK_BYTES
    places: dict[Place, int] = field(default_factory=dict)
    """Process and thread of each number in `place`, in the order in which they come; several traces may share them."""
    header: dict[str, Any] = field(default_factory=dict, init=False)
    """The other keys of the JSON object, none of a bare list; complete when the iteration has ended."""
    first_ns: int | None = field(default=None, init=False)
    """Start of the earliest event so far, without the trace's base: where viewers begin to count; None without any."""
    _problems: dict[str, Problem] = field(default_factory=dict, init=False)
    _read_bytes: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[dict[str, pl.DataFrame]]:
        stream = open_stream(self.path)
        try:
            chunker = Chunker(stream, self.path, self.chunk_bytes)
            values = chunker.header
            if chunker.header_problem is not None:
                self._report_keys("before", chunker.header_problem)
            ended, read = False, 0
            for decoded in self._decoded(chunker):
                for text, problem in decoded.problems.items():
                    self._problems.setdefault(text, Problem(place=problem.place)).count += problem.count
                self.sink.advance(stream.position - read)
                read = stream.position
                self._place(decoded)
                self._see(decoded.frames)
                yield decoded.frames
                if decoded.ended:
                    ended = True
                    if not chunker.is_list:
                        values |= self._trailing(decoded.rest)
            self.header = values
            # Writers may leave out the bracket of a bare list, but no part of an event.
            cut = self._problems.pop(CUT_OFF, None) is not None or not (ended or chunker.is_list)
            self._report_problems()
            self._report_end(stream.damage, cut=cut)
        finally:
            stream.close()
            if self._read_bytes > _LARGE_BYTES:  # the memory of small ones serves the next trace
                library.trim()

    def _see(self, frames: Mapping[str, pl.DataFrame]) -> None:
        """Note the earliest event."""
        for cls in self.layout.classes:
            frame = frames.get(cls.name)
            if frame is not None and "start_ns" in frame.columns and not cls.phases <= _UNSEEN:
                starts = [frame["start_ns"].min(), self.first_ns]
                self.first_ns = min((start for start in starts if isinstance(start, int)), default=None)

    def _place(self, decoded: Decoded) -> None:
        """Give new places their numbers, in file order whichever thread was first."""
        if not decoded.places:
            return
        numbers = pl.Series([self.places.setdefault(place, len(self.places)) for place in decoded.places])
        number = pl.col("place")
        new = pl.lit(numbers).gather(pl.when(number < 0).then(-1 - number))
        meant = pl.coalesce(new, number).cast(pl.Int32)
        for name, frame in decoded.frames.items():
            if "place" in frame.columns:
                decoded.frames[name] = frame.with_columns(place=meant)

    def _decoded(self, chunker: Chunker) -> Iterator[Decoded]:
        """Decode chunk by chunk; an event that a wrong cut left over goes in front of the next chunk."""
        decoder = EventDecoder(self.layout, self.places)
        rest = b""
        with closing(self._ahead(chunker, decoder)) as chunks:
            for chunk, ready in chunks:
                self._read_bytes = chunk.offset
                if rest or ready is None:
                    text = rest + chunk.gap + chunk.text if rest else chunk.text
                    start = chunk.offset - (len(text) - len(chunk.text))
                    decoded = decoder.decode(text, last=chunk.last, offset=start)
                else:
                    decoded = ready
                if decoded.ended:  # much may follow the array
                    decoded.rest += _joined(c.gap + c.text for c, _ in chunks)
                    yield decoded
                    return
                rest = decoded.rest
                yield decoded
                chunker.take_back(chunk)

    def _ahead(
        self, chunks: Iterable[Chunk], decoder: EventDecoder
    ) -> Generator[tuple[Chunk, Decoded | None], None, None]:
        """Each chunk in order, with what it decodes to; None if the caller must decode it.

        Threads are enough: the compiled decoder and Polars work without the interpreter's lock.
        """
        if self.sink.workers < 2 or not library.is_available():
            for chunk in chunks:
                yield chunk, None
            return
        threads = ThreadPoolExecutor(self.sink.workers)
        try:
            waiting: deque[tuple[Chunk, Future[Decoded]]] = deque()
            for chunk in chunks:
                decoded = threads.submit(decoder.decode, chunk.text, last=chunk.last, offset=chunk.offset)
                waiting.append((chunk, decoded))
                if len(waiting) > self.sink.workers:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            threads.shutdown(cancel_futures=True)

    def _trailing(self, text: bytes) -> dict[str, Any]:
        """The keys after the list of events."""
        found = trailing_members(text)
        if found is None:
            self._report_keys("after", "not valid JSON")
        return found or {}

    def _report_keys(self, where: str, problem: str) -> None:
        self.sink.issue(
            "warning",
            self.path,
            f"the keys {where} the list of events cannot be read ({problem}); rank, groups and devices may be unknown",
            "Copy or record the file again if rank or groups are missing.",
            place=f"{where} `traceEvents`",
        )

    def _report_problems(self) -> None:
        remedy = "The rest is complete. Record again if they matter."
        for text, found in self._problems.items():
            if text == BETWEEN:
                problem, after = f"{text} is left out", "No event is lost by it."
                self.sink.issue("note", self.path, problem, after, place=found.place, lost=0)
                continue
            problem = f"{plural(found.count, 'event')} left out: {text}"
            self.sink.issue("warning", self.path, problem, remedy, place=found.place, lost=found.count)

    def _report_end(self, damage: str | None, *, cut: bool) -> None:
        if damage is not None:
            problem = f"{damage}; events up to there are read"
            self.sink.issue("error", self.path, problem, "Copy or record the file again.")
        elif cut:
            problem = "the file ends inside the list of events; complete events are read"
            self.sink.issue("error", self.path, problem, "Let the profiler finish writing before the file is copied.")


def _joined(texts: Iterable[bytes]) -> bytes:
    """The texts as one. Beyond the limit of keys, only their start, which then is not valid JSON."""
    found, size = [], 0
    for text in texts:
        if size <= MAX_HEADER_BYTES:
            found.append(text)
        size += len(text)
    return b"".join(found)
