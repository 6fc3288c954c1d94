"""Profiling some whole steps of a training process on request, with the windows and files of the recorder.

What is left is a recording like those of `stepscope record`, so that `stepscope analyze` reads it with its rank, its
process groups and the step numbers of the live worker. Windows begin and end on the training thread at the ends of
steps; everything else, including the export, runs on a thread of its own.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.live.capture.room import MOST_BYTES, NoRoom, files_in, make_room, new_capture
from stepscope.live.capture.window_backend import WindowBackend, is_torch
from stepscope.live.messages import Capture, Captured
from stepscope.record.backend import Backend
from stepscope.record.marks import MarkBuffer
from stepscope.record.options import Options
from stepscope.record.session import Session
from stepscope.record.steps import StepTracker
from stepscope.recording_format.layout import WINDOWS
from stepscope.recording_format.marks import BACKWARD, CHECKPOINT, DATA, FORWARD, OPTIMIZER, STEP

log = logging.getLogger("stepscope")

MOST_STEPS = 50
"""More steps are refused: a profile grows without a bound."""
MOST_SECONDS = 600.0
_PHASES = frozenset((DATA, FORWARD, BACKWARD, OPTIMIZER, CHECKPOINT))
_WAITING, _WARMING, _RUNNING, _OVER = range(4)

AfterStep = Callable[[int, int], None]


class StepProfile:
    """One capture: from the request to the answer.

    Args:
        request: What to profile.
        tracker: Of the live worker; its `after_step` is a list of functions called on the training thread.
        base: Knows rank, groups and device.
        rank_directory: Of this rank's records; the capture is written below it.
    """

    def __init__(self, request: Capture, tracker: StepTracker, base: Backend, rank_directory: Path) -> None:
        self._request = request
        self._tracker = tracker
        self._base = base
        self._room = rank_directory
        self._lock = threading.Lock()
        self._state = _WAITING
        self._ended = threading.Event()
        self._marks = MarkBuffer()
        self._first = self._last = 0
        self._step_began_ns = 0
        self._notes: list[str] = []
        self._put: Callable[[Any], None] | None = None
        self._backend = WindowBackend(base)
        self._options = replace(
            Options(),
            record_shapes=request.shapes,
            host_stack=request.stacks,
            given=frozenset({"host_stack"}) if request.stacks else frozenset(),
        )

    def run(self) -> Captured:
        """Profile, and wait until the files are written. To be called on a thread that may block."""
        rank = self._base.identity().rank or 0
        if not 1 <= self._request.steps <= MOST_STEPS:
            return Captured(
                rank, self._request.capture, error=f"give 1 to {MOST_STEPS} steps, not {self._request.steps}"
            )
        try:
            directory = new_capture(self._room, self._request.capture)
        except NoRoom as error:
            return Captured(rank, self._request.capture, error=str(error))
        try:
            answer = self._profiled(directory, rank)
        except Exception as error:
            log.warning("a capture failed", exc_info=error)
            reason = f"the profile failed ({type(error).__name__}: {error})"
            answer = Captured(rank, self._request.capture, error=reason)
        if answer.error:
            shutil.rmtree(directory, ignore_errors=True)
        return answer

    def forget(self) -> None:
        """In a forked child: the profile goes on in the parent."""
        self._lock = threading.Lock()
        self._state = _OVER
        if hasattr(self, "_session"):
            self._session.forget()
            self._backend.windows.in_child()

    def _profiled(self, directory: Path, rank: int) -> Captured:
        self._backend.attach(self._tracker, self._options)
        self._session = Session(
            directory, self._backend, self._options, self._marks, lambda: None, lambda _events, _steps: None
        )
        after_step: list[AfterStep] = self._tracker.after_step  # type: ignore[attr-defined]
        try:
            if self._backend.gives_way():
                reason = "another torch.profiler is active in this process, and only one can be at a time"
                return Captured(rank, self._request.capture, error=reason)
            self._session.open()
            after_step.append(self._step_ended)
            in_time = self._ended.wait(min(max(self._request.seconds, 0.0), MOST_SECONDS))
            if not in_time:
                self._out_of_time()
            self._session.close()
        finally:
            with self._lock:
                self._state = _OVER
            if self._step_ended in after_step:
                after_step.remove(self._step_ended)
            self._backend.detach()
        return self._answer(directory, rank)

    def _answer(self, directory: Path, rank: int) -> Captured:
        note = "; ".join([*self._notes, *self._session.problems])
        steps = [self._first, self._last] if self._first and self._last >= self._first else []
        if not self._first or not any(WINDOWS in Path(name).parts for name in files_in(directory)):
            return Captured(rank, self._request.capture, error=note or "nothing was recorded")
        if not make_room(directory):
            note = f"the profile was larger than the {MOST_BYTES >> 20} MiB that captures may take; ask for fewer steps"
            return Captured(rank, self._request.capture, error=note)
        return Captured(rank, self._request.capture, files_in(directory), steps, directory=str(directory), note=note)

    def _step_ended(self, step: int, now_ns: int) -> None:
        """Called on the training thread, right after `step` ended."""
        if self._state == _OVER or not self._lock.acquire(timeout=_LONGEST_WAIT_S):
            return
        try:
            self._at_end_of(step, now_ns)
        except Exception as error:
            self._notes.append(f"the profile failed in step {step} ({type(error).__name__}: {error})")
            self._finish()
        finally:
            self._lock.release()

    def _at_end_of(self, step: int, now_ns: int) -> None:
        first = self._request.first_step
        if self._state == _WAITING:
            warms = is_torch(self._base) and self._backend.target != "ascend"
            if warms and (not first or step + 2 == first):
                self._warm_up(step + 1)
            elif step + 1 >= first:
                self._begin(step + 1)
        elif self._state == _WARMING:
            self._session.windows.abandon()
            self._begin(step + 1)
        elif self._state == _RUNNING:
            self._mark(step, now_ns)
            if step >= self._first + self._request.steps - 1:
                self._end(step)

    def _warm_up(self, step: int) -> None:
        """Start the profiler a step early, and discard what it records: the first step under it is slow, by seconds on
        a GPU, and would not be comparable."""
        self._state = _WARMING
        self._open_window(step, discard=True)

    def _begin(self, step: int) -> None:
        self._open_window(step)
        if self._state == _OVER:
            return
        first = self._request.first_step
        if first and step > first:
            self._notes.append(f"step {first} was over when the request came, so steps from {step} on are profiled")
        self._state, self._first, self._last = _RUNNING, step, step - 1
        self._session.span_began()
        self._step_began_ns = perf_counter_ns()
        self._overhear()

    def _open_window(self, step: int, *, discard: bool = False) -> None:
        """Begin to record operators, or end with the reason. The time that this takes belongs to no step."""
        self._tracker.interrupted()
        self._session.windows.begin(step, discard=discard)
        self._tracker.resumed()
        if not self._session.windows.is_open:
            self._finish()

    def _mark(self, step: int, now_ns: int) -> None:
        self._marks.add((STEP, str(step), self._step_began_ns, now_ns, step, get_ident(), ""))
        self._step_began_ns, self._last = now_ns, step

    def _overhear(self) -> None:
        """Also keep the phases that the live worker's hooks report, of the kinds that are switched on."""
        put = self._put = getattr(self._tracker, "_put", None)
        if put is None:
            return
        add = self._marks.add

        def both(item: Any) -> None:
            put(item)
            if item[0] in _PHASES:
                add((*item[:6], ""))

        self._tracker._put = both  # type: ignore[attr-defined]

    def _end(self, step: int) -> None:
        self._tracker.interrupted()
        self._last = min(self._last, self._session.windows.end(step))
        self._tracker.resumed()
        self._session.span_ended()
        self._finish()

    def _finish(self) -> None:
        self._state = _OVER
        if self._put is not None:
            self._tracker._put, self._put = self._put, None  # type: ignore[attr-defined]
        self._ended.set()

    def _out_of_time(self) -> None:
        """Training has not come to the end of the last step: end the profile here, where that is safe."""
        seconds = min(self._request.seconds, MOST_SECONDS)
        with self._lock:
            if self._state == _OVER:
                return
            where = f"training was in step {self._tracker.number + 1} when the {seconds:g} s for this capture were over"
            if self._state == _WAITING:
                first = f"step {self._request.first_step}" if self._request.first_step else "the next step"
                self._notes.append(f"{first} did not begin: {where}")
            elif self._backend.target == "cpu":
                self._notes.append(f"{where}, so it ends there")
                self._session.windows.end(self._tracker.number + 1)
                if self._state == _RUNNING:
                    self._session.span_ended()
            else:
                # stopping waits for the device, and would wait for ever where that hangs
                self._notes.append(f"{where}; on a device only the training thread can end a profile")
                self._lose_window()
            self._finish()

    def _lose_window(self) -> None:
        """Leave the open window to the next end of a step, on the training thread, which discards it."""
        windows, tracker = self._session.windows, self._tracker
        after_step: list[AfterStep] = tracker.after_step  # type: ignore[attr-defined]

        def discard(_step: int, _now_ns: int) -> None:
            after_step.remove(discard)
            windows.abandon()

        after_step.append(discard)
        self._first = 0


_LONGEST_WAIT_S = 30.0
"""How long training waits for another thread that ends the profile; it takes about 6 us for each event."""
