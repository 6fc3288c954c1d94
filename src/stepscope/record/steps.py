"""Receives steps, phases and batches from the hooks of a backend. This is the hot path of an always-on recorder."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

from stepscope.record.marks import MarkBuffer
from stepscope.record.processor_waits import ProcessorWaits, Reading, between
from stepscope.recording_format.marks import EPOCH, EVERY_KIND, GARBAGE, NO_KIND, STEP, MarkKind, step_detail


class StepTracker:
    """Counts steps and takes marks. All times are `time.perf_counter_ns`.

    A step ends when the hooks report it (the optimizer is done) or when the user calls `step()`; after the user's first
    call, the hooks no longer end steps.

    Args:
        marks: Receives the marks while recording.
        step_ended: Called with the number of every step that ends, recorded or not, and the time.
        epoch: Called when an epoch begins and ends, with its number and whether it is over.
        identity_changed: To be called by hooks when the process group was created or destroyed.
    """

    light = False
    """Only marks are wanted: no operators, input pipelines or clocks."""

    def __init__(
        self,
        marks: MarkBuffer,
        step_ended: Callable[[int, int], None],
        epoch: Callable[[int, bool], None],
        identity_changed: Callable[[], None],
    ) -> None:
        self.active = False
        """Whether marks are kept now."""
        self.wanted = NO_KIND
        """The kinds of marks that are kept now. Hooks skip their work for others, but must call `ended`."""
        self.awaits_activity = True
        """Hooks must call `activity`. If not, they need not, to save time."""
        self.number = 0
        """The last completed step, recorded or not; steps count from 1."""
        self.by_user = False
        self.epochs_reported = False
        """A trainer reports where epochs begin and end, so they need not be guessed."""
        self.on_activity: Callable[[], None] | None = None
        """Called at the first activity after `begin`, or after an interruption."""
        self._add, self._add_batch = marks.add, marks.add_batch
        self._step_ended, self._epoch = step_ended, epoch
        self.identity_changed = identity_changed
        self._epoch_began_ns: int | None = None
        self._began_ns: int | None = None
        self._pending_ns: int | None = None
        self._resumed_ns: int | None = None
        self._waits = ProcessorWaits()
        self._began_waits: Reading | None = None
        self._pending_waits: Reading | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickles a wrapper gets nothing of the tracker; see `record.torch.hook.Hook`."""
        return SimpleNamespace, (), {"wanted": frozenset(), "light": self.light}

    def begin(self) -> None:
        """Recording begins: the next activity begins a step."""
        self._began_ns = self._pending_ns = self._resumed_ns = None
        self.active, self.wanted = True, EVERY_KIND

    def finish(self) -> None:
        """Recording ends. An unfinished step does not count."""
        self._settle()
        self.pause()
        self._began_ns = self._resumed_ns = None
        self._waits.close()

    def forget(self) -> None:
        """In a forked child: recording goes on in the parent."""
        self.pause()
        self._waits.close()

    def pause(self) -> None:
        """Keep no marks from now on. May be called from any thread."""
        self.active, self.wanted = False, NO_KIND

    def mark(self, kind: MarkKind, name: str, start_ns: int, end_ns: int, detail: str = "") -> None:
        """A phase is over (see `docs/recording.md` for kinds). Ignored unless recording."""
        if not self.active:
            return
        if self._pending_ns is not None or self._began_ns is None:
            self._step_goes_on(start_ns)
        self._add((kind, name, start_ns, end_ns, self.number + 1, get_ident(), detail))

    def collected(self, generation: int, start_ns: int, end_ns: int) -> None:
        """Python has collected garbage on this thread. That is not training, so it begins no step; and it may have
        interrupted any method of this object, so it changes no state here."""
        if self.active:
            self._add((GARBAGE, f"generation {generation}", start_ns, end_ns, self.number + 1, get_ident(), ""))

    def activity(self, start_ns: int, kind: MarkKind | None = None) -> None:  # noqa: ARG002 - for those who need it
        """Something that belongs to training begins: a phase whose mark, of this kind, comes later."""
        if not self.active or (self._pending_ns is None and self._began_ns is not None):
            return
        wakes = self.on_activity is not None
        self._step_goes_on(start_ns)
        if wakes and self._began_ns is not None:  # the time to start recording belongs to no step
            self._began_ns, self._began_waits = perf_counter_ns(), self._waits.read()

    def enters(self, kind: MarkKind, start_ns: int) -> None:
        """A call begins that does not begin a step, whose mark, of this kind, comes later."""

    def passes(self, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An outermost module is called with these arguments. The mark of the forward pass comes later. Must not
        raise."""

    def backward_begins(self, tensors: Any) -> Callable[[], None] | None:  # noqa: ARG002
        """A backward pass from these tensors begins.

        Returns:
            What to call when it is over, if anything.
        """
        return None

    def interrupted(self) -> None:
        """The recorder itself takes time now, which belongs to no step. The next step begins afterwards."""
        self._settle()
        self._began_ns = self._resumed_ns = None

    def resumed(self) -> None:
        """The recorder is done: from now on, time belongs to the next step, if one follows."""
        if self._began_ns is None:
            self._resumed_ns = perf_counter_ns()

    def ended(self, now_ns: int, number: int | None = None) -> None:
        """A hook reports the end of a step.

        Args:
            now_ns: Current time.
            number: Its number if the framework counts steps; default: one more than the last.
        """
        if not self.by_user:
            self._end(now_ns, number)

    def user_step(self) -> None:
        """The user reports the end of a step."""
        now_ns = perf_counter_ns()
        if not self.by_user:
            self.by_user = True
            if self._pending_ns is not None:  # the hooks have just ended the same step
                self._pending_ns, self._pending_waits = now_ns, self._waits.read()
                return
            if self.number and self._began_ns is None:  # likewise, and it is already written
                return
        self._end(now_ns, None)

    def batch(
        self, now_ns: int, pipeline: str, number: int, wait_ns: int, queue: tuple[int | None, int | None, int | None]
    ) -> None:
        """The training loop took a batch.

        Args:
            now_ns: Current time.
            pipeline: The loader.
            number: Batch number, from 0.
            wait_ns: How long the loop waited for it.
            queue: Batches ready after it was taken, queue capacity and workers; None if unknown.
        """
        if self.active:
            self._add_batch((now_ns, pipeline, number, self.number + 1, wait_ns, *queue))

    def epoch_began(self, number: int, now_ns: int) -> None:
        """Epoch `number` begins."""
        self._epoch_began_ns = now_ns
        self._epoch(number, False)

    def epoch_ended(self, number: int) -> None:
        """Epoch `number` is over. It gets no mark if its beginning was not reported."""
        began_ns, self._epoch_began_ns = self._epoch_began_ns, None
        if began_ns is not None and self.active:  # not part of a step, and does not begin one
            self._add((EPOCH, str(number), began_ns, perf_counter_ns(), self.number, get_ident(), ""))
        self._epoch(number, True)

    def _end(self, now_ns: int, number: int | None) -> None:
        if self._pending_ns is not None:
            self._settle()
        self.number = self.number + 1 if number is None else number
        self._pending_ns = None
        if self.active and self._began_ns is not None:
            self._pending_ns, self._pending_waits = now_ns, self._waits.read()
        self._step_ended(self.number, now_ns)

    def _step_goes_on(self, start_ns: int) -> None:
        """An activity of the current step began, or of the next step if the last one has ended."""
        if self._pending_ns is not None and start_ns >= self._pending_ns:
            self._settle()
        if self._began_ns is None:
            self._began_ns = start_ns if self._resumed_ns is None else min(start_ns, self._resumed_ns)
            self._resumed_ns, self._began_waits = None, self._waits.read()
            if self.on_activity is not None:
                self.on_activity()

    def _settle(self) -> None:
        """Add the mark of the step that has ended, now that nothing more can belong to it."""
        if self._pending_ns is None or self._began_ns is None:
            return
        detail = step_detail(between(self._began_waits, self._pending_waits))
        self._add((STEP, str(self.number), self._began_ns, self._pending_ns, self.number, get_ident(), detail))
        self._began_ns, self._pending_ns = self._pending_ns, None
        self._began_waits = self._pending_waits
