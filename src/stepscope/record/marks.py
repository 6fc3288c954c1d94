"""Marks and batches on their way to disk: queued on the training thread, written by the recorder's thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

from stepscope.record.files import append_text
from stepscope.recording_format.rows import BATCHES, MARKS, Batch, CsvFile, Mark, batch_lines, mark_lines

_AT_ONCE = 1000
"""Rows per write: the most that a full disk can lose."""
_T = TypeVar("_T")


class MarkBuffer:
    """Keeps marks until `flush` writes them. `add` and `add_batch` may be called from any thread; for speed they are
    the queues' own methods."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()
        self._batches: deque[Batch] = deque()
        self._flushing = Lock()
        self._threads = NativeThreads()
        self.add = self._marks.append
        """Adds one mark."""
        self.add_batch = self._batches.append
        """Adds one batch."""

    def forget(self) -> None:
        """In a forked child: the parent writes the queued rows, and the copy of its lock may never be released."""
        self._marks.clear()
        self._batches.clear()
        self._threads.clear()
        self._flushing = Lock()

    def flush(self, directory: Path) -> None:
        """Write all queued rows.

        Raises:
            OSError: If writing fails; rows that were not written stay queued.
        """
        with self._flushing:
            shift = epoch_shift_ns()
            _drain(self._marks, lambda marks: mark_lines(marks, shift, self._threads), directory, MARKS)
            _drain(self._batches, lambda batches: batch_lines(batches, shift), directory, BATCHES)


class NativeThreads(dict[int, int]):
    """Native ids of threads; looked up when rows are written, since each lookup is a system call."""

    def __missing__(self, thread: int) -> int:
        known = next((t.native_id for t in threading.enumerate() if t.ident == thread), None) or thread
        self[thread] = known
        return known


def _drain(queue: deque[_T], text: Callable[[list[_T]], str], directory: Path, file: CsvFile) -> None:
    """Write a queue to a file in pieces. If writing fails, rows that were not written stay in the queue."""
    while queue:
        taken = [queue.popleft() for _ in range(min(len(queue), _AT_ONCE))]
        try:
            append_text(directory / file.name, file.header, text(taken))
        except OSError:
            queue.extendleft(reversed(taken))
            raise


def epoch_shift_ns() -> int:
    """Current difference between the time since the epoch and `time.perf_counter_ns`.

    Measured at each flush, since the two clocks drift apart and the wall clock may be adjusted. Of three readings, the
    one that took the least time is used.
    """
    readings = []
    for _ in range(3):
        before = time.perf_counter_ns()
        epoch = time.time_ns()
        after = time.perf_counter_ns()
        readings.append((after - before, epoch - (before + after) // 2))
    return min(readings)[1]
