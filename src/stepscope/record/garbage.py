"""Python's garbage collections: while one runs, no thread runs Python code, so training stops too."""

from __future__ import annotations

import gc
import signal
import sys
import weakref
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter_ns
from types import CodeType
from typing import Any

from stepscope.record.hooks import Switch
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import GARBAGE

LEAST_NS = 100_000
"""Shorter collections get no mark: young generations are collected often, in a few microseconds each."""
LONG_NS = 10_000_000
"""Longer ones always get a mark: there are at most 100 a second."""
AT_ONCE = 10_000
"""Of those in between, this many get a mark, plus one for every `ANOTHER_NS`: at most 1 MB, and 6 kB a second."""
ANOTHER_NS = 10_000_000
REPORTED_RATIO = 0.05
"""Share of the recorded time from which collections without a mark are reported: half of the limit for findings about
idle time."""


class GarbageMarks:
    """Marks collections, explicit and automatic, while `steps` are recorded.

    Python calls it before and after each, on the collecting thread; only one collection runs at a time. The callback
    may interrupt any other code, so it only appends to a queue.
    """

    def __init__(self, steps: StepTracker) -> None:
        self._steps = steps
        self._switch = Switch("garbage collections")
        self._interrupts = Interrupts(GarbageMarks._called)
        self._began_ns = 0
        """When the running collection began; 0 if there is none to mark."""
        self._clear()

    def _clear(self) -> None:
        self._since_ns = perf_counter_ns()
        self._marked = 0
        """Marks of collections shorter than `LONG_NS`."""
        self._unmarked = self._unmarked_ns = self._longest_unmarked_ns = 0

    def begin(self) -> None:
        """Mark collections from now on. May be called again after `end`."""
        self._began_ns = 0
        if self._called not in gc.callbacks:
            self._interrupts.watch()
            gc.callbacks.append(self._called)

    def end(self) -> None:
        """Stop marking. May be called twice, and from any thread."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
            self._interrupts.leave()

    def forget(self) -> None:
        """In a forked child: drop the counts of the parent process."""
        self.end()
        self._clear()

    def messages(self, recorded_ns: int) -> Iterator[str]:
        """A message if collections without a mark took a significant part of `recorded_ns`, the recording so far."""
        if self._unmarked_ns and self._unmarked_ns >= REPORTED_RATIO * recorded_ns:
            yield (
                f"{self._unmarked} short Python garbage collections (the longest took "
                f"{self._longest_unmarked_ns / 1e6:.2f} ms) are not marked; together they took "
                f"{self._unmarked_ns / 1e9:.2f} of {recorded_ns / 1e9:.2f} s"
            )

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = 0 if self._switch.off or GARBAGE not in self._steps.wanted else perf_counter_ns()
            return
        over_ns = perf_counter_ns()
        began_ns, self._began_ns = self._began_ns, 0
        if not began_ns:
            return
        try:
            if self._gets_mark(over_ns - began_ns, over_ns):
                self._steps.collected(info["generation"], began_ns, over_ns)
        except Exception as error:
            self._switch.failed(error)

    def _gets_mark(self, length_ns: int, now_ns: int) -> bool:
        if length_ns >= LONG_NS:
            return True
        if length_ns >= LEAST_NS and self._marked < AT_ONCE + (now_ns - self._since_ns) // ANOTHER_NS:
            self._marked += 1
            return True
        self._unmarked += 1
        self._unmarked_ns += length_ns
        self._longest_unmarked_ns = max(self._longest_unmarked_ns, length_ns)
        return False


class Interrupts:
    """Raises Ctrl-C again in the script if it was lost in `function`, which the interpreter calls.

    A signal handler runs before the next Python instruction. After a collection that may be inside the callback, and an
    exception raised there is only printed: training would continue despite Ctrl-C.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._code: CodeType = function.__code__
        self._before: Callable[[Any], Any] | None = None
        self._again: weakref.ref[_Last] | None = None

    def watch(self) -> None:
        """Watch unraisable exceptions from now on."""
        if self._before is None:
            self._before = sys.unraisablehook
            sys.unraisablehook = self._unraisable

    def leave(self) -> None:
        """Stop watching. If another hook has been installed over this one, it stays and passes everything on."""
        if self._before is not None and sys.unraisablehook == self._unraisable:
            sys.unraisablehook, self._before = self._before, None

    def _unraisable(self, unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        if unraisable.exc_type is not KeyboardInterrupt or trace is None or trace.tb_frame.f_code is not self._code:
            (self._before or sys.__unraisablehook__)(unraisable)
            return
        # Raised here, the exception would be lost again. So compiled code without Python instructions raises it, when
        # `last` is destroyed, which is after this function returns.
        last = _Last()
        self._again = weakref.ref(last, partial(next, map(interrupt_main, (signal.SIGINT,))))


class _Last:
    """Destroyed when the function that holds it returns."""
