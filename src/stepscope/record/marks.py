"""Marks and batches on their way to disk: taken on the training thread, written by the recorder's own."""

from __future__ import annotations

import csv
import io
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import TypeVar

from stepscope.record.files import append_text

MARKS = "kind,name,start_ns,end_ns,step,thread,detail"
BATCHES = "time_ns,pipeline,batch,step,wait_ns,queue_size,queue_capacity,workers"

_AT_ONCE = 1000
"""Rows that are written at once: a full disk costs no more than these."""
_QUOTED = re.compile('[",\r\n]').search
"""Finds what a text in a CSV file must not hold, unless in quotes."""
_T = TypeVar("_T")
_Mark = tuple[str, str, int, int, int, int, str]
_Batch = tuple[int, str, int, int, int, "int | None", "int | None", "int | None"]


class Marks:
    """Keeps marks until `flush` writes them. `add` and `add_batch` may be called from any thread; they are the
    queues' own methods, for marks are taken between any two operators."""

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque()
        self._batches: deque[_Batch] = deque()
        self._flushing = Lock()
        self._threads = _NativeThreads()
        self.add = self._marks.append
        """Takes one mark: kind, name, start, end (of `time.perf_counter_ns`), step, thread (of `get_ident`), detail."""
        self.add_batch = self._batches.append
        """Takes one batch: when it came (of `time.perf_counter_ns`), pipeline, number, step, time waited for it in ns,
        batches ready, room for them, workers."""

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
            _drain(self._marks, lambda marks: self._mark_lines(marks, shift), directory / "marks.csv", MARKS)
            _drain(self._batches, lambda batches: _batch_lines(batches, shift), directory / "batches.csv", BATCHES)

    def _mark_lines(self, marks: list[_Mark], shift: int) -> str:
        """Marks as CSV text. Made by hand, at a third of what the `csv` module costs, for training waits meanwhile."""
        texts, threads = _Texts(), self._threads
        return "".join(
            [
                f"{kind},{texts[name]},{start + shift},{end + shift},{step},{threads[thread]},{texts[detail]}\n"
                for kind, name, start, end, step, thread, detail in marks
            ]
        )


def _batch_lines(batches: list[_Batch], shift: int) -> str:
    texts = _Texts()
    return "".join(
        [
            f"{came + shift},{texts[pipeline]},{number},{step},{wait},{texts[ready]},{texts[room]},{texts[workers]}\n"
            for came, pipeline, number, step, wait, ready, room, workers in batches
        ]
    )


class _Texts(dict[object, str]):
    """Values as they stand in a CSV file, each worked out once."""

    def __missing__(self, value: object) -> str:
        text = "" if value is None else str(value)
        if _QUOTED(text):
            text = '"' + text.replace('"', '""') + '"'
        self[value] = text
        return text


class _NativeThreads(dict[int, int]):
    """The numbers by which the system knows threads; asked here, since asking is a system call."""

    def __missing__(self, thread: int) -> int:
        known = next((t.native_id for t in threading.enumerate() if t.ident == thread), None) or thread
        self[thread] = known
        return known


def _drain(queue: deque[_T], text: Callable[[list[_T]], str], path: Path, header: str) -> None:
    """Write what waits in a queue, some of it at a time; what the disk does not take stays in the queue.

    Raises:
        OSError: If the disk does not take it.
    """
    while queue:
        taken = [queue.popleft() for _ in range(min(len(queue), _AT_ONCE))]
        try:
            append_text(path, header, text(taken))
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


def lines(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV text, each with its newline; None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
