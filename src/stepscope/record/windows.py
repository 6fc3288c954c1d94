"""Operator windows: begun and ended with steps on the training thread, written to disk by another thread."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepscope.record.backend import Backend, WindowLost, Written
from stepscope.record.files import append_text, make_private
from stepscope.record.marks import epoch_shift_ns
from stepscope.record.process_facts import own_thread
from stepscope.recording_format.layout import COMPLETE, FAILED, window_directory
from stepscope.recording_format.rows import WINDOWS, row_lines

log = logging.getLogger("stepscope")

MOST_WAITING = 1
"""Windows that may wait to be written; with more, no new one begins, so that memory stays bounded."""
PATIENCE_S = 30.0
"""How long training waits for the disk if no step may be missing."""
_POLL_S = 0.01


_Job = Callable[[], Written] | WindowLost
"""Writes a window's files; for a lost window, why."""


@dataclass
class _Window:
    """One window. Times are `time.perf_counter_ns`."""

    number: int
    directory: Path
    start_ns: int
    first_step: int
    end_ns: int = 0
    last_step: int = 0


class Windows:
    """The operator windows of one recording.

    Args:
        backend: Records them.
        problem: Called with a message if something fails.
        counted: Called with the numbers of events and steps of each window written, on the writing thread.
    """

    directory: Path
    """The recording's directory; set before the first window."""

    def __init__(
        self,
        backend: Backend,
        problem: Callable[[str], None],
        counted: Callable[[int, int], None],
    ) -> None:
        self._backend = backend
        self._problem = problem
        self._counted = counted
        self._next = 0
        self._open: _Window | None = None
        self._discards = False
        self._gave_way = False
        """The last window ended early, which was reported."""
        self._jobs: queue.Queue[tuple[_Window, _Job] | None] = queue.Queue()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """Whether operators are recorded now."""
        return self._open is not None

    def begin(self, step: int, *, discard: bool = False, patient: bool = False) -> None:
        """Begin a window with step `step`.

        Args:
            step: Its first step.
            discard: Discard its data.
            patient: If too many windows wait for the disk, wait for them; otherwise skip this one.
        """
        if self._open is not None:
            return
        give_up = time.monotonic() + (PATIENCE_S if patient else 0)
        while self._waiting > MOST_WAITING and time.monotonic() < give_up:
            time.sleep(_POLL_S)
        if self._waiting > MOST_WAITING:
            self._problem("operators are recorded faster than the disk can write them; some windows are left out")
            return
        directory = window_directory(self.directory, self._next)
        make_private(directory)
        try:
            self._backend.windows.begin(directory)
        except Exception as error:  # e.g. another profiler is active; it may be gone by the next window
            shutil.rmtree(directory)
            if not self._gave_way:
                self._problem(f"operators are not recorded: {error}")
            return
        self._open = _Window(self._next, directory, time.perf_counter_ns(), step)
        self._discards = discard
        self._gave_way = False
        self._next += 1

    def end(self, step: int) -> int:
        """End the open window, if any, with step `step`, and queue it for writing.

        Returns:
            The last step that it holds: an earlier one if another profiler took over. For a lost window, which is
            reported separately, `step`.
        """
        window, self._open = self._open, None
        if window is None:
            return step
        try:
            job: _Job | None = self._backend.windows.end(window.directory)
        except WindowLost as error:
            job = error
        lost = isinstance(job, WindowLost)
        window.end_ns, window.last_step = time.perf_counter_ns(), step
        if (cut := self._backend.windows.cut) is not None:
            window.last_step, window.end_ns = cut
            self._gave_way = True
            if not lost:
                self._problem(
                    f"another profiler took over in step {cut[0] + 1}; while it is active, operators are not recorded"
                )
        if self._discards or job is None:
            shutil.rmtree(window.directory)
            return window.last_step
        self._waiting += 1
        self._jobs.put((window, job))
        if self._thread is None:
            thread = own_thread(self._work, "stepscope-export")
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down; `wait` does the work
                return window.last_step
            self._thread = thread
        return step if lost else window.last_step

    def abandon(self) -> None:
        """End the open window and discard its data."""
        self._discards = True
        self.end(0)

    def wait(self) -> None:
        """Wait until all windows are on disk."""
        self._jobs.put(None)
        if self._thread is None:
            self._work()
        else:
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            window, write = job
            try:
                if isinstance(write, WindowLost):  # listed and reported in turn, after those still being written
                    raise write
                files, events = write()
                state = COMPLETE
                if events is not None:
                    self._counted(events, window.last_step - window.first_step + 1)
            except Exception as error:
                files, state = [], FAILED
                self._problem(f"a window of operators is lost: {error}")
            finally:
                self._waiting -= 1
            try:
                self._enter(window, state, files)
            except OSError as error:
                self._problem(f"window {window.number} could not be added to {WINDOWS.name}: {error}")

    def _enter(self, window: _Window, state: str, files: list[str]) -> None:
        shift = epoch_shift_ns()
        times = (window.start_ns + shift, window.end_ns + shift)
        steps = (window.first_step, window.last_step)
        row = (window.number, *times, *steps, self._backend.windows.kind, state, ";".join(files))
        append_text(self.directory / WINDOWS.name, WINDOWS.header, row_lines([row]))
