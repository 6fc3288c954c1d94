"""`read_events`: a trace file as batches of columns, several chunks at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from stepscope.sources.base import Report
from stepscope.sources.native import library
from stepscope.sources.trace_events.base import Batch, Layout, Problem, TraceHeader
from stepscope.sources.trace_events.chunks import CHUNK_BYTES, MAX_HEADER_BYTES, Chunker, trailing_members
from stepscope.sources.trace_events.decode import Decoded, EventDecoder
from stepscope.sources.trace_events.salvage import CUT_OFF
from stepscope.sources.trace_events.stream import open_stream
from stepscope.sources.trace_events.workers import Workers

_LARGE_BYTES = 256 << 20
"""From this (inflated) size on, memory is given back after reading rather than kept for the next trace."""


Advance = Callable[[int], None]


def unwatched(count: int) -> None:
    """Nobody watches how far reading has come."""


def _joined(texts: Iterable[bytes]) -> bytes:
    """The texts as one. Beyond the limit of keys, only their start, which then is not valid JSON."""
    found, size = [], 0
    for text in texts:
        if size <= MAX_HEADER_BYTES:
            found.append(text)
        size += len(text)
    return b"".join(found)


class TraceEvents:
    """The events of one trace file, to be iterated once. Made by `read_events`.

    `header`, `skipped` and `seen` are complete when the iteration has ended.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        *,
        report: Report,
        workers: int,
        chunk_bytes: int,
        advance: Advance,
    ) -> None:
        self._path = path
        self._advance = advance
        self._layout = layout
        self._report = report
        self._workers = workers
        self._chunk_bytes = chunk_bytes
        self.header = TraceHeader()
        self.skipped: dict[tuple[str, str], int] = {}
        """Events of no class: (phase, category) to count."""
        self._problems: dict[str, Problem] = {}
        self._read_bytes = 0

    def __iter__(self) -> Iterator[Batch]:
        stream = open_stream(self._path)
        try:
            chunker = Chunker(stream, self._path, self._chunk_bytes)
            values = dict(chunker.header)
            if chunker.header_problem is not None:
                self._report_keys("before", chunker.header_problem)
            ended, read = False, 0
            for decoded in self._decoded(chunker):
                self._account(decoded.batch)
                self._advance(stream.position - read)
                read = stream.position
                yield decoded.batch
                if decoded.ended:
                    ended = True
                    if not chunker.is_list:
                        values.update(self._trailing(decoded.rest))
            self.header = TraceHeader(values)
            # Writers may leave out the bracket of a bare list, but no part of an event.
            cut = self._problems.pop(CUT_OFF, None) is not None or not (ended or chunker.is_list)
            self._report_problems()
            self._report_end(stream.damage, cut=cut)
        finally:
            stream.close()
            if self._read_bytes > _LARGE_BYTES:  # the memory of small ones serves the next trace
                library.trim()

    def _decoded(self, chunker: Chunker) -> Iterator[Decoded]:
        """Decode chunk by chunk; an event that a wrong cut left over goes in front of the next chunk."""
        decoder = EventDecoder(self._layout)
        rest = b""
        with Workers(self._layout, self._workers) as workers:
            chunks = workers.map(iter(chunker))
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

    def _account(self, batch: Batch) -> None:
        for key, count in batch.skipped.items():
            self.skipped[key] = self.skipped.get(key, 0) + count
        for text, problem in batch.problems.items():
            known = self._problems.setdefault(text, Problem(place=problem.place))
            known.count += problem.count

    def _trailing(self, text: bytes) -> dict[str, Any]:
        """The keys after the list of events."""
        found = trailing_members(text)
        if found is None:
            self._report_keys("after", "not valid JSON")
        return found or {}

    def _report_keys(self, where: str, problem: str) -> None:
        self._report(
            "warning",
            self._path,
            f"the keys {where} the list of events cannot be read ({problem}); rank, groups and devices may be unknown",
            "Copy or record the file again if rank or groups are missing.",
            place=f"{where} `traceEvents`",
        )

    def _report_problems(self) -> None:
        for text, problem in self._problems.items():
            self._report(
                "warning",
                self._path,
                f"{problem.count} events {text}; they are left out",
                "The rest is complete. Record again if they matter.",
                place=problem.place,
                lost=problem.count,
            )

    def _report_end(self, damage: str | None, *, cut: bool) -> None:
        if damage is not None:
            self._report(
                "error", self._path, f"{damage}; events up to there are read", "Copy or record the file again."
            )
        elif cut:
            self._report(
                "error",
                self._path,
                "the file ends inside the list of events; complete events are read",
                "Let the profiler finish writing before the file is copied.",
            )


def read_events(
    path: Path,
    layout: Layout,
    *,
    report: Report,
    workers: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    advance: Advance = unwatched,
) -> TraceEvents:
    """Read a trace file, plain or gzip, as batches of columns in file order; memory holds a few chunks only.

    Args:
        path: The file: `{"traceEvents": [...], ...}` or a bare list of events.
        layout: Which events are wanted, as which frames.
        report: Called for each kind of damage once the events are read; usually `sink.issue`.
        workers: Chunks that are decoded at a time, each by a thread.
        chunk_bytes: Text that is decoded at once, roughly.
        advance: Called with the number of bytes read since the last call; usually `sink.advance`.

    Returns:
        An iterable of `Batch`, to be used once. Its `header` is complete when the iteration has ended.

    Raises:
        UnreadableInput: While iterating, if the file cannot be opened or holds no list of events.
    """
    return TraceEvents(path, layout, report=report, workers=workers, chunk_bytes=chunk_bytes, advance=advance)
