"""Marks and batches on their way to disk: taken on the training thread, written by the recorder's own."""

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
"""Rows that are written at once: a full disk costs no more than these."""
_T = TypeVar("_T")


class MarkBuffer:
    """Keeps marks until `flush` writes them. `add` and `add_batch` may be called from any thread; they are the
    queues' own methods, for marks are taken between any two operators."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()
        self._batches: deque[Batch] = deque()
        self._flushing = Lock()
        self._threads = _NativeThreads()
        self.add = self._marks.append
        """Takes one mark."""
        self.add_batch = self._batches.append
        """Takes one batch."""

    def forget(self) -> None:
        """This is a forked copy: what waits here is written by the other, whose lock may be held for ever."""
        self._marks.clear()
        self._batches.clear()
        self._threads.clear()
        self._flushing = Lock()

    def flush(self, directory: Path) -> None:
        """Write what came since the last time.

        Raises:
            OSError: If the disk does not take it; what was not written is kept for the next time.
        """
        with self._flushing:
            shift = epoch_shift_ns()
            _drain(self._marks, lambda marks: mark_lines(marks, shift, self._threads), directory, MARKS)
            _drain(self._batches, lambda batches: batch_lines(batches, shift), directory, BATCHES)


class _NativeThreads(dict[int, int]):
    """The numbers by which the system knows threads; asked here, since asking is a system call."""

    def __missing__(self, thread: int) -> int:
        known = next((t.native_id for t in threading.enumerate() if t.ident == thread), None) or thread
        self[thread] = known
        return known


def _drain(queue: deque[_T], text: Callable[[list[_T]], str], directory: Path, file: CsvFile) -> None:
    """Write what waits in a queue, some of it at a time; what the disk does not take stays in the queue.

    Raises:
        OSError: If the disk does not take it.
    """
    while queue:
        taken = [queue.popleft() for _ in range(min(len(queue), _AT_ONCE))]
        try:
            append_text(directory / file.name, file.header, text(taken))
        except OSError:
            queue.extendleft(reversed(taken))
            raise


def epoch_shift_ns() -> int:
    """What is added to `time.perf_counter_ns` to get the time since the epoch, now.

    Asked at each flush and not once, since the two clocks drift apart and the wall clock may be set. Of a few readings
    the one with the least time between both clocks counts.
    """
    best: tuple[int, int] | None = None
    for _ in range(3):
        before = time.perf_counter_ns()
        epoch = time.time_ns()
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = (after - before, epoch - (before + after) // 2)
    assert best is not None
    return best[1]
