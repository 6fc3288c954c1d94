"""Turns reports of hooks and users (steps, epochs, start, stop) into spans and windows of a recording."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

from stepscope.record.backend import Backend
from stepscope.record.forks import in_child
from stepscope.record.garbage import GarbageMarks
from stepscope.record.marks import MarkBuffer
from stepscope.record.options import Options
from stepscope.record.schedule import Action, Plan
from stepscope.record.session import Session
from stepscope.record.steps import StepTracker
from stepscope.record.window_timing import Missing, WindowTiming

log = logging.getLogger("stepscope")

_ALL: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """The engine of a Profiler. None of its methods raises because of a recording failure.

    Args:
        root: The `profiler` directory.
        cycle_over: Called when a cycle of the schedule is over and on disk.
        woke: Called at the first sign of training.
        lazy: Write nothing to disk before the first sign of training.
    """

    def __init__(
        self,
        root: Path,
        backend: Backend,
        options: Options,
        cycle_over: Callable[[], None],
        woke: Callable[[], None],
        *,
        lazy: bool,
    ) -> None:
        marks = MarkBuffer()
        self.options = options
        self.backend = backend
        self.steps = StepTracker(marks, self.step_ended, self.epoch, self.identity_changed)
        self._garbage = GarbageMarks(self.steps)
        self.running = False
        """Between `start` and `stop`."""
        self.after_step: Callable[[int, int], None] | None = None
        """Called with the number of every step that ends, recorded or not, and the time, once all that its end brings
        about here is done."""
        self._plan = Plan(options.schedule, options.steps, options.epochs)
        self._marks_only = self._plan.is_always and not options.op_time
        """Nothing needs to be done at the end of a step."""
        self._action = Action.NONE
        self._is_turning = False
        """The end of a step is being handled."""
        self._cycle_over = cycle_over
        self._saves = options.on_trace_ready is not None
        self._unsaved = False
        """Something was recorded since the last call of `on_trace_ready`."""
        self._first_number = 0
        self._timing = WindowTiming(
            round(options.window_seconds * 1e9), counts=backend.counts_events, spares=self._plan.is_always
        )
        self._missing = Missing()
        self._pauses = False
        """No window is open, to limit the share of time that recording takes."""
        self.session = Session(root, backend, options, marks, self._failed, self._timing.counted)
        self.is_by_environment = lazy
        self._lazy = lazy
        self._woke = woke
        self._attached = False
        for other in list(_ALL):
            other.rest()
        _ALL.add(self)
        self._attach()

    def start(self) -> None:
        """Start recording, according to the plan."""
        if not self._attached and not self.session.failed:
            self._attach()
        if self.session.failed:
            return
        self.running = True
        self._first_number = self.steps.number
        self._missing = Missing()
        self._plan.began(self.steps.number + 1)
        if self._lazy:
            self.steps.begin()
            self.steps.on_activity = self._wake
            return
        self._open()
        self._turn(self._plan.action(self.steps.number + 1))

    def stop(self) -> None:
        """Stop recording; everything is then on disk."""
        was_running, self.running = self.running, False
        self._garbage.end()
        if not was_running or not self.session.is_open:
            self.steps.finish()
            return
        try:
            self._turn(Action.NONE)
        except Exception as error:
            self.session.problem(f"the last window is lost ({type(error).__name__}: {error})")
        with self._failing("stopping failed"):
            steps = self.steps.number - self._first_number
            if not self.session.has_spans:
                self.session.problem(f"nothing was recorded: {self._plan} never began; {self.steps.number} steps ended")
            elif not steps:
                self.session.problem("no steps were detected; call step() at the end of each training step")
            for text in (*self._missing.messages(steps), *self._garbage.messages(self.session.recorded_ns)):
                self.session.problem(text)
            self.session.close()
        if self._saves and self._unsaved:
            self._unsaved = False
            self._cycle_over()

    def cut(self) -> bool:
        """End what is being recorded now, on this thread, and begin nothing more; `stop` may then run on any thread.

        Returns:
            Whether that is done. If the end of a step is just being handled, nothing is done: try again.
        """
        if self._is_turning:
            return False
        self._plan = Plan(lambda _: Action.NONE)
        if self.running and self.session.is_open:
            with self._failing("recording could not be ended"):
                self._turn(Action.NONE)
        return True

    def rest(self) -> None:
        """Another Profiler is created. If this one has recorded and is stopped, remove its hooks until it starts again:
        otherwise the hooks of all Profilers that a script keeps would pile up."""
        if self.session.has_spans and not self.running:
            self.detach()

    def _attach(self) -> None:
        self._attached = True
        with self._failing("its hooks could not be installed"):
            self.backend.attach(self.steps, self.options)
            for name, reason in self.backend.lacks(self.options).items():
                self.session.problem(f"{name} has no effect here: {reason}")

    def detach(self) -> None:
        """Remove the hooks."""
        if not self._attached:
            return
        self._attached = False
        with self._failing("its hooks could not be removed"):
            self.backend.detach()

    def step_ended(self, number: int, now_ns: int) -> None:
        """Step `number` is over: continue, roll the window, or do what the plan requires for the next step."""
        if not self._marks_only and self.running and self.session.is_open:
            self._is_turning = True
            try:
                self._follow_plan(number, now_ns)
            finally:
                self._is_turning = False
        if self.after_step is not None:
            self.after_step(number, now_ns)

    def _follow_plan(self, number: int, now_ns: int) -> None:
        if self.session.failed:
            self._go_quiet()
            return
        try:
            following = self._plan.action(number + 1)
            if self._action is Action.RECORD_AND_SAVE:
                self._turn(Action.NONE)
                self._save()
                if not self.running:  # stopped by `on_trace_ready`
                    return
            if (following.records, following is Action.WARMUP) != (self._action.records, self._action is Action.WARMUP):
                self._turn(following)
            elif following.records:
                self._roll(number, now_ns)
            self._action = following
        except Exception:
            with self._failing("recording a step failed"):  # entered here, not above: that would cost every step time
                raise

    def epoch(self, number: int, over: bool) -> None:
        """Epoch `number` begins, or is over."""
        self._plan.epoch(number, over=over)
        if self.running and self.session.is_open and self.options.epochs is not None:
            with self._failing("recording an epoch failed"):
                following = self._plan.action(self.steps.number + 1)
                if following.records != self._action.records:
                    self._turn(following)
                    if not following.records:
                        self._save()

    def identity_changed(self) -> None:
        """The process group was created or destroyed: store the new rank and groups."""
        with self._failing("the process group could not be inspected"):
            self.session.look_again()

    def forget(self) -> None:
        """In a forked child: the recording belongs to the parent process."""
        self.running = False
        self.steps.forget()
        self._garbage.forget()
        self.session.forget()

    def wait_again(self) -> None:
        """In a forked child of a process recorded from the environment: it may train as well."""
        self.forget()
        self._action = Action.NONE
        self._lazy = True
        self.start()

    def _wake(self) -> None:
        """The first sign of training."""
        self.steps.on_activity = None
        if self.backend.in_data_worker():
            self.forget()
            return
        self._lazy = False
        self._woke()
        self._open()
        first = self._plan.action(self.steps.number + 1)
        if not first.records:
            self.steps.finish()
        self._turn(first, begun=first.records)

    def _open(self) -> None:
        with self._failing("recording could not begin"):
            try:
                self.session.open()
                self._garbage.begin()
            except OSError as error:
                self.session.fail(f"{error.filename or self.session.root} is not writable ({error.strerror})")

    def _turn(self, action: Action, *, begun: bool = False) -> None:
        """End the current span or window, and begin what `action` requires."""
        if self.session.failed:
            self._go_quiet()
            return
        windows, number = self.session.windows, self.steps.number
        was, self._action = self._action, action
        if was.records and not action.records:
            self.steps.finish()
            self.session.span_ended()
        if windows.is_open:
            self._end_window(number)
        if action is Action.NONE:
            return
        if self.options.op_time:
            windows.begin(number + 1, discard=action is Action.WARMUP)
            self._timing.began(number + 1, perf_counter_ns())
        if action.records and not was.records:
            self.session.span_began()
            self._unsaved = True
            if not begun:
                self.steps.begin()

    def _roll(self, number: int, now_ns: int) -> None:
        """End the operator window if it is long enough, and begin the next. The time this takes belongs to no step."""
        windows = self.session.windows
        if not self.options.op_time:
            return
        if not windows.is_open:
            self._missing.add(number, spared=self._pauses)
            if self._timing.resumes(number, now_ns):
                self._begin_window(number + 1)
                self.steps.resumed()
        elif self._timing.is_over(number, now_ns):
            self.steps.interrupted()
            began_ns = thread_time_ns()
            self._end_window(number)
            ended_ns = perf_counter_ns()
            self._timing.cost(ended_ns - now_ns, ended_ns, thread_time_ns() - began_ns)
            self._pauses = not self._timing.resumes(number, ended_ns)
            if not self._pauses:
                self._begin_window(number + 1)
            self.steps.resumed()

    def _end_window(self, number: int) -> None:
        """End the window with step `number`."""
        for step in range(self.session.windows.end(number) + 1, number + 1):
            self._missing.add(step, spared=False)

    def _begin_window(self, step: int) -> None:
        self.steps.interrupted()
        windows = self.session.windows
        windows.begin(step, patient=not self._plan.is_always or self._timing.awaits_count)
        now_ns, self._pauses = perf_counter_ns(), False
        if windows.is_open:
            self._timing.began(step, now_ns)
        else:
            self._timing.refused(now_ns)

    def _save(self) -> None:
        """A cycle is over: write it to disk and call `on_trace_ready`."""
        if not self._saves:
            return
        self.session.windows.wait()
        self.session.flush()
        self._unsaved = False
        self._cycle_over()

    def _go_quiet(self) -> None:
        """After a failure on another thread: close the open window here, on the training thread."""
        self.steps.pause()
        if self.session.windows.is_open:
            self.session.windows.abandon()

    def _failed(self) -> None:
        self.steps.pause()
        self._garbage.end()

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """If the block fails, the recording ends; training goes on."""
        try:
            yield
        except Exception as error:
            log.debug("Profiler: %s", what, exc_info=error)
            self.session.fail(f"{what} ({type(error).__name__}: {error})")


@in_child
def _in_child() -> None:
    for recorder in _ALL:
        if recorder.is_by_environment and recorder.running:
            recorder.wait_again()
        else:
            recorder.forget()
