"""In the process that we attach to: a recording of some steps by our Profiler, and its removal."""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.record import forks
from stepscope.record.environment import FRAMEWORKS
from stepscope.record.schedule import Action

if TYPE_CHECKING:
    from stepscope.live.attach.visitor import Visit
    from stepscope.record.profiler import Profiler
    from stepscope.record.recorder import Recorder

_LOOK_S = 0.1
"""How often to look for orders, and to report the steps that have ended."""
_RETRY_S = 0.002
_MOST_ENDS = 64
"""Ends of steps that are kept for the next report."""


def work(visit: Visit, order: dict[str, Any]) -> None:
    """Install the hooks, record when told, and remove everything."""
    forks.borrow()  # before the recorder is imported
    forks.in_child(visit.abandon)
    recording = Recording(visit, order)
    try:
        visit.on_main(recording.install)
        recording.follow()
    except EOFError:
        pass  # the other side is gone: nothing more is recorded
    finally:
        recording.remove()


class Range:
    """A schedule that records from one step to another, as soon as they are known."""

    def __init__(self) -> None:
        self.first = self.last = 0
        self.began = 1
        """Number of the step that is 0 for schedules."""

    def __call__(self, step: int) -> Action:
        """The action for a step, counted from `began`."""
        return Action.RECORD if self.first <= step + self.began <= self.last else Action.NONE

    def __str__(self) -> str:
        return f"steps {self.first} to {self.last}"


class Recording:
    """One recording: installed, told which steps to record, removed."""

    def __init__(self, visit: Visit, order: dict[str, Any]) -> None:
        self._visit = visit
        self._options: dict[str, Any] = order["options"]
        self._framework = training_framework(self._options.get("framework"))
        self._range = Range()
        self._profiler: Profiler | None = None
        self._recorder: Recorder | None = None
        self._ends: deque[tuple[int, int]] = deque(maxlen=_MOST_ENDS)
        self._begun = False
        self._last_ended = 0
        """The last step whose end was handled to the last: the recorder may lag behind the count of steps."""

    def install(self) -> None:
        """On the main thread: install the hooks. Steps are counted from now on.

        Raises:
            StepscopeError: If something else records in this process, or it does not train.
        """
        from stepscope.record import profiler  # noqa: PLC0415 - see `work`

        other = profiler.running()
        if other is not None:
            raise StepscopeError(f"the process is being recorded already, into {other.root}; stop that first")
        began_ns = perf_counter_ns()
        made = profiler.Profiler(
            **{**self._options, "framework": self._framework, "start_profile": False, "schedule": self._range}
        )
        recorder = self._recorder = made._recorder
        if recorder is None:
            raise StepscopeError("nothing is recorded in helper processes, such as workers of a data loader")
        self._profiler = made
        recorder.after_step = self._step_ended
        identity = recorder.backend.identity()
        self._visit.say(
            "ready",
            framework=self._framework,
            rank=identity.rank,
            world_size=identity.world_size,
            stopped_ms=(perf_counter_ns() - began_ns) / 1e6,
        )

    def follow(self) -> None:
        """Report steps, and record, until the recording is over."""
        while not self._is_over():
            for order in self._visit.orders(_LOOK_S):
                if order["type"] == "begin":
                    self._visit.on_main(partial(self._begin, order))
                elif order["type"] == "where":
                    self._visit.say("place", where=self._visit.place())
                else:
                    return
            self._report()
        self._report()

    def remove(self) -> None:
        """Complete the recording, and remove the hooks and all that the recorder has added to the process."""
        from stepscope.record import profiler  # noqa: PLC0415 - see `work`

        made, recorder = self._profiler, self._recorder
        if made is not None and recorder is not None:
            if self._begun:
                if self._last_ended < self._range.last:
                    while not self._visit.on_main(recorder.cut):
                        time.sleep(_RETRY_S)
                made.stop()
            recorder.backend.end_threads()
            recorder.after_step = None
            began_ns = perf_counter_ns()
            self._visit.on_main(recorder.detach)
            recorder.steps.forget()  # a call in progress may have opened its file again
            first, last = self._range.first, min(self._range.last, recorder.steps.number)
            self._visit.say(
                "done",
                directory=str(made.directory or ""),
                first=first,
                steps=max(last - first + 1, 0) if self._begun else 0,
                stopped_ms=(perf_counter_ns() - began_ns) / 1e6,
                failed=recorder.session.failed,
            )
        self._profiler = self._recorder = None
        profiler.leave()
        forks.give_back()

    def _begin(self, order: dict[str, Any]) -> None:
        """On the main thread: record some steps, from a given one on or from the next one that begins.

        The numbers of the steps are moved first, to those of other ranks. If the first step has begun already, nothing
        is done, and the other side gives another.
        """
        assert self._profiler is not None and self._recorder is not None
        steps = self._recorder.steps
        number = steps.number + order["shift"]
        first = number + 2 if order["first"] is None else order["first"]
        if first < number + 2:
            self._visit.say("late", number=steps.number)
            return
        steps.number = number
        self._range.first, self._range.last, self._range.began = first, first + order["steps"] - 1, number + 1
        self._last_ended = 0  # of the new numbers, none has ended
        self._profiler.start()
        self._begun = True
        self._visit.say("begun", first=first, last=self._range.last, directory=str(self._profiler.directory or ""))

    def _step_ended(self, number: int, now_ns: int) -> None:
        self._ends.append((number, now_ns))
        self._last_ended = number

    def _report(self) -> None:
        ends = [self._ends.popleft() for _ in range(len(self._ends))]
        if ends:
            self._visit.say("steps", ends=ends)

    def _is_over(self) -> bool:
        recorder = self._recorder
        if recorder is None or not self._begun:
            return False
        return self._last_ended >= self._range.last or recorder.session.failed


def training_framework(wanted: str | None) -> str:
    """The framework that this process trains with: it is loaded, and ready.

    Raises:
        StepscopeError: If there is none, or several.
    """
    loaded = [name for name in FRAMEWORKS if name in sys.modules]
    if wanted is not None:
        loaded = [name for name in loaded if name == wanted]
    if not loaded:
        raise StepscopeError(
            f"the process has not loaded {wanted or 'torch or mindspore'}, so it does not train (yet). A launcher's "
            "training processes are its children: use --children"
        )
    if len(loaded) > 1:
        raise StepscopeError("the process has loaded both torch and mindspore; name the one that trains: --framework")
    module = sys.modules[loaded[0]]
    if getattr(module.__spec__, "_initializing", False):
        raise StepscopeError(f"the process is still loading {loaded[0]}; try again in a few seconds")
    return loaded[0]
