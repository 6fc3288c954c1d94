"""Receives steps and ranges from the hooks of a backend, and queues them. This is the hot path of a live worker."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.live.worker import on_times, reducers
from stepscope.live.worker.device_times import DeviceTimes, Timing
from stepscope.live.worker.work import elements
from stepscope.record.marks import MarkBuffer
from stepscope.record.processor_waits import between
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import (
    BACKWARD,
    COLLECTIVE,
    DATA,
    FORWARD,
    GARBAGE,
    OPTIMIZER,
    STEP,
    MarkKind,
)

log = logging.getLogger("stepscope")

MOST_QUEUED = 200_000
"""Ranges that wait to be written, some 40 MB; more are dropped and counted."""
WAITS_NS = 50_000_000
"""Least time between two readings of the processor waits, since they cost more than all else that is noted of a step. A
shorter step gets the mean of the steps between the last two readings."""
_MOST_FAILED = 20
"""Forward passes in a row whose work could not be counted; then it is counted no more. A module that is only traced
fails a few times."""
Item = tuple[MarkKind, str, int, int, int, int, Any, "Timing | None"]
"""Kind, name, start and end (`time.perf_counter_ns`), step, thread (`get_ident`), detail, times on the device. The
detail of a step is its processor waits (see `WAITS_NS`) and units, that of a backward pass the time when its own
gradients were ready. The step is 0 before the first step began."""

_BEGIN = frozenset((None, DATA, FORWARD, BACKWARD, OPTIMIZER))
"""What begins the first step; before it there may be communication that sets the job up."""
_SIGNS = frozenset((DATA, FORWARD, BACKWARD, OPTIMIZER, COLLECTIVE))
"""Marks that are wanted until the first step has begun, to see it begin."""


class LiveTracker(StepTracker):
    """Counts steps and queues ranges of the kinds that are on. All times are `time.perf_counter_ns`.

    A step lasts from the end of the one before to its own; the first one from the first activity of training. A range
    is recorded if its kind was on when it began.

    Args:
        identity_changed: To be called by hooks when the process group was created or destroyed.
        joins: Training is under way, so that the step in which it is now is not whole, and not recorded.
    """

    light = True

    def __init__(self, identity_changed: Callable[[], None], *, joins: bool = False) -> None:
        super().__init__(MarkBuffer(), _no_step, _no_epoch, identity_changed)
        self.queue: deque[Item] = deque()
        self.dropped = 0
        """Ranges that found the queue full."""
        self.after_step: list[Callable[[int, int], None]] = []
        """Called on the training thread right after a step ended, with its number and the time."""
        self.device: DeviceTimes | None = None
        """Takes times on the device, once it is in use; see `time_device`."""
        self.last_ns = perf_counter_ns()
        """When the last step ended, or the tracker was made."""
        self.times: dict[MarkKind, on_times.Times] = {}
        """When each kind was on. Replaced as a whole."""
        self.switches: tuple[int, frozenset[MarkKind]] = on_times.ALWAYS, frozenset()
        """Since when which kinds are on."""
        self.first_ns: int | None = None
        """When the first activity of training began."""
        self._was_on = True
        """Whether anything was on when this step began."""
        self._going = joins
        self._units = 0
        self._looks = True
        self._failed = 0
        self._put = self.queue.append
        self._run_delay_ns: int | None = None
        """Processor waits of a step, by the last two readings."""
        self._read_ns = self._read_number = 0
        """When the processor waits were read last, and which step had ended then."""
        self._root: weakref.ref[Any] = weakref.ref(self)
        """The module called last; at first none."""
        self._reducers: weakref.WeakKeyDictionary[Any, reducers.Reducer | None] = weakref.WeakKeyDictionary()
        self._reducer: reducers.Reducer | None = None
        self._computed_ns = 0
        """When the gradients of the present backward pass were computed; 0 if unknown."""
        if joins:
            self.awaits_activity = False
        else:
            self.wanted = _SIGNS

    def time_device(self, device: DeviceTimes) -> None:
        """From now on, take times on the device, too."""
        self.device = device
        self.awaits_activity = True

    def switch(self, on: frozenset[MarkKind], at_ns: int | None = None) -> None:
        """From now on, record ranges of exactly these kinds that begin. For one thread at a time."""
        now_ns = perf_counter_ns() if at_ns is None else at_ns
        self.switches = now_ns, on
        self.times = on_times.switched(self.times, on, now_ns)
        self.active = bool(on)
        self.wanted = on if self._going else on | _SIGNS
        if self._going:  # since just now, perhaps
            self.wanted = on

    def forget(self) -> None:
        """In a forked child: all this belongs to the parent."""
        self.switch(frozenset())
        self._going, self.on_activity, self.device = True, None, None
        self.awaits_activity = False
        self.pause()
        self.queue.clear()
        self.after_step.clear()
        self._waits.close()

    def activity(self, start_ns: int, kind: MarkKind | None = None) -> None:
        """Something that belongs to training begins."""
        if not self._going:
            self._begins(start_ns, kind)
        if self.device is not None:
            self.device.begins(kind)

    def enters(self, kind: MarkKind, start_ns: int) -> None:
        """A call begins whose mark comes later."""
        self.activity(start_ns, kind)

    def passes(self, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An outermost module is called: count the work, and note what exchanges its gradients."""
        if not self._looks:
            return
        try:
            self._units += elements(args, kwargs)
            if self._root() is not root:
                self._root_changed(root)
            self._failed = 0
        except Exception as error:  # e.g. a module of the user that cannot be hashed, or one that torch.fx traces
            self._failed += 1
            if self._failed < _MOST_FAILED:
                return
            self._looks = False
            log.warning("live: inputs of forward passes are no longer counted (%s: %s)", type(error).__name__, error)

    def backward_begins(self, tensors: Any) -> Callable[[], None] | None:
        """A backward pass begins: if it exchanges gradients, find out when its own are ready."""
        reducer = self._reducer
        if reducer is None:
            return None
        if not reducer.exchanges():
            self._computed_ns = on_times.ALWAYS
            return None
        start: list[Any] = [0, None]

        def computed() -> None:
            start[0] = perf_counter_ns()
            if self.device is not None:
                start[1] = self.device.event()

        remove = reducers.watch(tensors, computed)
        if remove is None:
            return None

        def over() -> None:
            now_ns = perf_counter_ns()
            remove()
            if start[0]:
                self._computed_ns = start[0]
                timing = None if self.device is None else self.device.timing(start[1])
                self._queue(COLLECTIVE, "all_reduce", start[0], now_ns, reducer.detail, timing)

        return over

    def mark(self, kind: MarkKind, name: str, start_ns: int, end_ns: int, detail: Any = "") -> None:
        """A range is over. Ignored unless its kind was on when it began."""
        timing = None if self.device is None else self.device.ends(kind)
        if kind == BACKWARD:
            computed_ns, self._computed_ns = self._computed_ns, 0
            detail = end_ns if computed_ns > end_ns else computed_ns
        self._queue(kind, name, start_ns, end_ns, detail, timing)

    def collected(self, generation: int, start_ns: int, end_ns: int) -> None:
        """Python has collected garbage on this thread; see the base class."""
        self._queue(GARBAGE, "", start_ns, end_ns, generation, None)

    def user_step(self) -> None:
        """The user reports the end of a step; see the base class."""
        now_ns = perf_counter_ns()
        if not self.by_user:
            self.by_user = True
            if self.number:  # the hooks have just ended the same step
                self._began_ns = now_ns
                return
        self._end(now_ns, None)

    def batch(self, *_: Any) -> None:
        """Batches are not recorded, only waits for them."""

    def epoch_began(self, number: int, now_ns: int) -> None:
        """Epochs are not recorded."""

    def epoch_ended(self, number: int) -> None:
        """Epochs are not recorded."""

    def interrupted(self) -> None:
        """Time of the recorder is not left out of steps: the ranks of a job are compared."""

    def resumed(self) -> None:
        """See `interrupted`."""

    def _root_changed(self, root: Any) -> None:
        known = self._reducers.get(root, self)
        if known is self:
            known = self._reducers[root] = reducers.reducer_below(root)
        self._root = weakref.ref(root)
        if known is not None:  # else the gradients may still be those of a module called before, e.g. a loss on top
            self._reducer = known  # type: ignore[assignment]

    def _queue(self, kind: MarkKind, name: str, start_ns: int, end_ns: int, detail: Any, timing: Timing | None) -> None:
        times = self.times.get(kind, on_times.NEVER)
        from_ns, until_ns = times[0]
        if not from_ns <= start_ns < until_ns and not on_times.was_on(times, start_ns):
            return
        if len(self.queue) >= MOST_QUEUED:
            self.dropped += 1
            return
        number = 0 if self._began_ns is None else self.number + 1
        self._put((kind, name, start_ns, end_ns, number, get_ident(), detail, timing))

    def _begins(self, start_ns: int, kind: MarkKind | None) -> None:
        """The first activity, or the first that belongs to a step."""
        if self.first_ns is None:
            self.first_ns = start_ns
        if self.on_activity is not None:
            wake, self.on_activity = self.on_activity, None
            wake()
        if kind in _BEGIN and not self._going:
            self._going = True
            self.wanted = self.switches[1]
            self.awaits_activity = self.device is not None
            self._began_ns = start_ns
            self._read_waits(start_ns)

    def _end(self, now_ns: int, number: int | None) -> None:
        if not self._going:
            self._begins(now_ns, None)
            self._began_ns = None
        self.number = self.number + 1 if number is None else number
        began_ns, self._began_ns = self._began_ns, now_ns
        was_on, self._was_on = self._was_on, bool(self.switches[1])
        if self._was_on or was_on:
            if now_ns - self._read_ns >= WAITS_NS:
                self._read_waits(now_ns)
            timing = None if self.device is None else self.device.step()
            if began_ns is not None:
                self._queue_step(began_ns, now_ns, timing)
        else:
            self._began_waits = self._run_delay_ns = None
        self._units = 0
        self.last_ns = now_ns
        if self.after_step:
            self._tell(now_ns)

    def whole(self, start_ns: int, end_ns: int) -> frozenset[MarkKind]:
        """The kinds that were on all the time between these."""
        since_ns, on = self.switches
        if start_ns >= since_ns:
            return on
        times = self.times.items()
        return frozenset(kind for kind, known in times if on_times.was_on_throughout(known, start_ns, end_ns))

    def _read_waits(self, now_ns: int) -> None:
        before, self._began_waits = self._began_waits, self._waits.read()
        waited_ns, steps = between(before, self._began_waits), self.number - self._read_number
        self._run_delay_ns = waited_ns // steps if waited_ns is not None and steps > 0 else None
        self._read_ns, self._read_number = now_ns, self.number

    def _queue_step(self, began_ns: int, now_ns: int, timing: Timing | None) -> None:
        if len(self.queue) >= MOST_QUEUED:
            self.dropped += 1
            return
        detail = self._run_delay_ns, self._units
        self._put((STEP, "", began_ns, now_ns, self.number, get_ident(), detail, timing))

    def _tell(self, now_ns: int) -> None:
        for call in tuple(self.after_step):
            try:
                call(self.number, now_ns)
            except Exception as error:
                log.warning("live: what runs after each step failed and is left out", exc_info=error)
                with suppress(ValueError):  # it has left by itself
                    self.after_step.remove(call)


def _no_step(number: int, now_ns: int) -> None:
    pass


def _no_epoch(number: int, is_over: bool) -> None:
    pass
