"""The rows of a spool in chunks, asked for in order, without writing them again if they are nearly in order already."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import polars as pl

from stepscope.sources.parts import Part
from stepscope.sources.spool import Spool, share_out

Item = TypeVar("Item")

_MOST_READ = 3
"""Stored rows are read where they are as long as that reads about this many times as many."""


@dataclass(frozen=True)
class Bounds:
    """First and last chunk that rows of a part belong to, and whether some belong to none."""

    first: int
    last: int
    has_others: bool = False


def ahead(items: Iterator[Item], workers: int) -> Generator[Item, None, None]:
    """Items in their order; with several workers, a thread makes the next one while one is in use."""
    if workers < 2:
        yield from items
        return
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(lambda: list(islice(items, 1)))
        while found := coming.result():
            coming = thread.submit(lambda: list(islice(items, 1)))
            yield found.pop()
    finally:
        thread.shutdown(cancel_futures=True)


class Chunks:
    """The rows of some parts chunk by chunk, in their order; each part is forgotten when its last chunk was taken.

    Args:
        parts: The rows.
        bounds: In which chunks those of each part are; None if in none.
        chunk_of: The chunk of each row of a part, given its place in the list; rows of none (null) are left out.
        scratch: As for `Spool`: parts with rows of many chunks are written again.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        bounds: Sequence[Bounds | None],
        chunk_of: Callable[[int, pl.DataFrame], pl.Series],
        scratch: Callable[[], Path],
    ) -> None:
        self._chunk_of = chunk_of
        self._waiting = {
            place: (part, bound)
            for place, (part, bound) in enumerate(zip(parts, bounds, strict=True))
            if bound is not None
        }
        self._read: dict[int, tuple[pl.DataFrame, pl.Series]] = {}
        self._shared: Spool[tuple[int, str]] | None = None
        stored = [(part, bound) for part, bound in self._waiting.values() if not part.is_ready]
        read = sum(part.rows * (bound.last - bound.first + 1) for part, bound in stored)
        if read > _MOST_READ * sum(part.rows for part, _ in stored):
            self._share_out(scratch)

    def _share_out(self, scratch: Callable[[], Path]) -> None:
        self._shared = Spool(scratch)
        for place, (part, _) in self._waiting.items():
            frame = part.taken()
            share_out(frame, self._chunk_of(place, frame), "", self._shared)
        self._waiting.clear()

    def take(self, number: int) -> list[pl.DataFrame]:
        """The rows of a chunk, in frames; numbers rise from call to call."""
        if self._shared is not None:
            return list(self._shared.taken((number, "")))
        found = []
        for place, (part, bound) in list(self._waiting.items()):
            if bound.first <= number <= bound.last:
                is_whole = bound.first == bound.last and not bound.has_others
                rows = part.taken() if is_whole else self._some(place, part, number)
                if rows.height:
                    found.append(rows)
            if bound.last <= number:
                part.forget()
                self._read.pop(place, None)
                del self._waiting[place]
        return found

    def _some(self, place: int, part: Part, number: int) -> pl.DataFrame:
        """Rows of a part that has those of several chunks."""
        if place not in self._read:
            frame = part.frame()
            self._read[place] = frame, self._chunk_of(place, frame)
        frame, chunks = self._read[place]
        if chunks.null_count() or not chunks.is_sorted():
            return frame.filter(chunks == number)
        start, end = (chunks.search_sorted(number, side) for side in ("left", "right"))
        return frame.slice(start, end - start)
