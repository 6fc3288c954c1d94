"""Where the hooks of a backend report to: steps, phases, batches. This is the hot path of an always-on recorder."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Protocol

from stepscope.record.marks import MarkBuffer
from stepscope.recording_format.marks import EPOCH, GARBAGE, STEP, MarkKind


class StepListener(Protocol):
    """Told about what may begin or end a window of recording. Called on the training thread."""

    def step_ended(self, number: int, now_ns: int) -> None:
        """Step `number` is over."""

    def epoch_began(self, number: int) -> None:
        """Epoch `number` begins."""

    def epoch_ended(self, number: int) -> None:
        """Epoch `number` is over."""

    def identity_changed(self) -> None:
        """The process group was made or left."""


class StepTracker:
    """Counts steps and takes marks. All times are of `time.perf_counter_ns`.

    A step ends where the hooks say (the optimizer is done), or where the user calls `step()`; from the user's first
    call on, the hooks do not end steps any more.

    Args:
        marks: Takes the marks while something is recorded.
        listener: Told about the ends of steps, recorded or not.
    """

    def __init__(self, marks: MarkBuffer, listener: StepListener) -> None:
        self.active = False
        """Whether marks are kept now; hooks may skip their work where it is false, but must call `ended`."""
        self.number = 0
        """The last step that has ended, recorded or not; steps count from 1."""
        self.by_user = False
        self.epochs_told = False
        """A trainer tells where epochs begin and end, so that nothing is to be guessed."""
        self.on_activity: Callable[[], None] | None = None
        """Called where a step begins that follows on no other: at the first activity after `begin`."""
        self._add, self._add_batch = marks.add, marks.add_batch
        self._listener = listener
        self._began_ns: int | None = None
        self._pending_ns: int | None = None
        self._resumed_ns: int | None = None

    def begin(self) -> None:
        """Recording begins: the next activity begins a step."""
        self._began_ns = self._pending_ns = self._resumed_ns = None
        self.active = True

    def finish(self) -> None:
        """Recording ends. What has begun of a step and is not over is no step."""
        self._settle()
        self.active = False
        self._began_ns = self._resumed_ns = None

    def mark(self, kind: MarkKind, name: str, start_ns: int, end_ns: int, detail: str = "") -> None:
        """A phase is over (see `docs/recording.md` for kinds). Ignored while nothing is recorded."""
        if not self.active:
            return
        if self._pending_ns is not None or self._began_ns is None:
            self._step_goes_on(start_ns)
        self._add((kind, name, start_ns, end_ns, self.number + 1, get_ident(), detail))

    def collected(self, generation: int, start_ns: int, end_ns: int) -> None:
        """Python has collected garbage on this thread. That is no activity of training, so it begins no step; and it
        may have come in the middle of any method of this object, so it changes nothing here."""
        if self.active:
            self._add((GARBAGE, f"generation {generation}", start_ns, end_ns, self.number + 1, get_ident(), ""))

    def activity(self, start_ns: int) -> None:
        """Something begins that is known to belong to training (a phase whose mark comes later)."""
        if not self.active or (self._pending_ns is None and self._began_ns is not None):
            return
        wakes = self.on_activity is not None
        self._step_goes_on(start_ns)
        if wakes and self._began_ns is not None:  # what it takes to begin recording belongs to no step
            self._began_ns = perf_counter_ns()

    def interrupted(self) -> None:
        """The recorder itself takes time now: it belongs to no step. The next one begins when that is over."""
        self._settle()
        self._began_ns = self._resumed_ns = None

    def resumed(self) -> None:
        """The recorder is done: what the script does from now on is part of the next step, if one follows."""
        if self._began_ns is None:
            self._resumed_ns = perf_counter_ns()

    def ended(self, now_ns: int, number: int | None = None) -> None:
        """A step is over, as a hook sees it.

        Args:
            now_ns: When.
            number: Its number, where the framework counts; else one more than the last.
        """
        if not self.by_user:
            self._end(now_ns, number)

    def user_step(self) -> None:
        """A step is over, as the user says."""
        now_ns = perf_counter_ns()
        if not self.by_user:
            self.by_user = True
            if self._pending_ns is not None:  # the hooks have just ended this very step
                self._pending_ns = now_ns
                return
            if self.number and self._began_ns is None:  # the same, and it is written already
                return
        self._end(now_ns, None)

    def batch(
        self, now_ns: int, pipeline: str, number: int, wait_ns: int, queue: tuple[int | None, int | None, int | None]
    ) -> None:
        """The training loop took a batch.

        Args:
            now_ns: When.
            pipeline: The loader.
            number: Batch number, from 0.
            wait_ns: How long the loop waited for it.
            queue: Batches ready after it was taken, room for them, and workers; None where unknown.
        """
        if self.active:
            self._add_batch((now_ns, pipeline, number, self.number + 1, wait_ns, *queue))

    def epoch_began(self, number: int) -> None:
        """Epoch `number` begins."""
        self._listener.epoch_began(number)

    def epoch_ended(self, number: int, start_ns: int, now_ns: int) -> None:
        """Epoch `number` is over."""
        if self.active:  # it is no part of a step, and does not begin one
            self._add((EPOCH, str(number), start_ns, now_ns, self.number, get_ident(), ""))
        self._listener.epoch_ended(number)

    def identity_changed(self) -> None:
        """The process group was made or left."""
        self._listener.identity_changed()

    def _end(self, now_ns: int, number: int | None) -> None:
        if self._pending_ns is not None:
            self._settle()
        self.number = self.number + 1 if number is None else number
        self._pending_ns = now_ns if self.active and self._began_ns is not None else None
        self._listener.step_ended(self.number, now_ns)

    def _step_goes_on(self, start_ns: int) -> None:
        """Something of a step began: of the next one, if the last has ended before."""
        if self._pending_ns is not None and start_ns >= self._pending_ns:
            self._settle()
        if self._began_ns is None:
            self._began_ns = start_ns if self._resumed_ns is None else min(start_ns, self._resumed_ns)
            self._resumed_ns = None
            if self.on_activity is not None:
                self.on_activity()

    def _settle(self) -> None:
        """Write the step that has ended, now that nothing can belong to it any more."""
        if self._pending_ns is None or self._began_ns is None:
            return
        self._add((STEP, str(self.number), self._began_ns, self._pending_ns, self.number, get_ident(), ""))
        self._began_ns, self._pending_ns = self._pending_ns, None
