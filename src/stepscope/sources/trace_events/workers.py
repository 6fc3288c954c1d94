"""Decoding several chunks of one file at a time.

Threads are enough: the compiled decoder and Polars work without the interpreter's lock.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from stepscope.sources.native.library import is_available
from stepscope.sources.trace_events.base import Layout
from stepscope.sources.trace_events.chunks import Chunk
from stepscope.sources.trace_events.decode import Decoded, EventDecoder


class Workers:
    """Threads that decode chunks ahead; a context manager that ends them.

    Args:
        layout: What to decode into.
        count: Number of threads; below 2, none are started.
    """

    def __init__(self, layout: Layout, count: int) -> None:
        self._free: queue.SimpleQueue[EventDecoder] = queue.SimpleQueue()
        self._count = count if is_available() else 1
        self._threads = ThreadPoolExecutor(self._count) if self._count > 1 else None
        for _ in range(self._count if self._threads else 0):
            self._free.put(EventDecoder(layout))

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def map(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Chunk, Decoded | None]]:
        """Each chunk in order, with what it decodes to; None if the caller must decode it."""
        if self._threads is None:
            for chunk in chunks:
                yield chunk, None
            return
        waiting: deque[tuple[Chunk, Future[Decoded]]] = deque()
        for chunk in chunks:
            waiting.append((chunk, self._threads.submit(self._decode, chunk)))
            if len(waiting) > self._count:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()

    def _decode(self, chunk: Chunk) -> Decoded:
        decoder = self._free.get()
        try:
            return decoder.decode(chunk.text, last=chunk.last, offset=chunk.offset)
        finally:
            self._free.put(decoder)
