"""Marks and batches on their way to disk: taken on the training thread, written by the recorder's own."""

from __future__ import annotations

import csv
import io
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from stepscope.record.files import append_text

MARKS = "kind,name,start_ns,end_ns,step,thread,detail"
BATCHES = "time_ns,pipeline,batch,step,wait_ns,queue_size,queue_capacity,workers"

_Mark = tuple[str, str, int, int, int, int, str]
_Batch = tuple[int, str, int, int, int, "int | None", "int | None", "int | None"]


class Marks:
    """Keeps marks until `flush` writes them. `add` and `add_batch` may be called from any thread."""

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque()
        self._batches: deque[_Batch] = deque()
        self._flushing = Lock()

    def add(self, kind: str, name: str, start_ns: int, end_ns: int, step: int, thread: int, detail: str) -> None:
        """Take one mark; its times are of `time.perf_counter_ns`."""
        self._marks.append((kind, name, start_ns, end_ns, step, thread, detail))

    def add_batch(
        self,
        pipeline: str,
        batch: int,
        step: int,
        wait_ns: int,
        size: int | None,
        capacity: int | None,
        workers: int | None,
    ) -> None:
        """Take one batch, taken now."""
        self._batches.append((time.perf_counter_ns(), pipeline, batch, step, wait_ns, size, capacity, workers))

    def forget(self) -> None:
        """This is a forked copy: what waits here is written by the other, whose lock may be held for ever."""
        self._marks.clear()
        self._batches.clear()
        self._flushing = Lock()

    def flush(self, directory: Path) -> None:
        """Write what came since the last time.

        Raises:
            OSError: If the disk does not take it; what was not written is kept for the next time.
        """
        with self._flushing:
            shift = epoch_shift_ns()
            marks = [self._marks.popleft() for _ in range(len(self._marks))]
            if marks:
                rows = ((k, n, a + shift, b + shift, step, thread, text) for k, n, a, b, step, thread, text in marks)
                try:
                    append_text(directory / "marks.csv", MARKS, lines(rows))
                except OSError:
                    self._marks.extendleft(reversed(marks))
                    raise
            batches = [self._batches.popleft() for _ in range(len(self._batches))]
            if batches:
                taken = ((when + shift, *rest) for when, *rest in batches)
                try:
                    append_text(directory / "batches.csv", BATCHES, lines(taken))
                except OSError:
                    self._batches.extendleft(reversed(batches))
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


def lines(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV text, each with its newline; None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
