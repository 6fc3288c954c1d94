"""Python's garbage collections: while one runs, no thread runs Python code, so training stops too."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from time import perf_counter_ns

from stepscope.record.hooks import Switch
from stepscope.record.interrupts import Interrupts
from stepscope.record.steps import StepTracker

LEAST_NS = 100_000
"""Shorter collections get no mark: young generations are collected often, in a few microseconds each."""
LONG_NS = 10_000_000
"""Longer ones always get a mark: there are at most 100 a second."""
AT_ONCE = 10_000
"""Of those in between, this many get a mark, plus one for every `ANOTHER_NS`: at most 1 MB, and 6 kB a second."""
ANOTHER_NS = 10_000_000
WORTH_RATIO = 0.05
"""Share of the recorded time from which collections without a mark are reported: half of the limit for findings about
idle time."""


class GarbageMarks:
    """Marks collections, explicit and automatic, while `steps` are recorded.

    Python calls it before and after each, on the collecting thread; only one collection runs at a time. The callback
    may interrupt any other code, so it only appends to a queue.

    Args:
        steps: Receives the marks.
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

    def told(self, recorded_ns: int) -> Iterator[str]:
        """A message about the time taken by collections without a mark, if it is significant.

        Args:
            recorded_ns: Length of the recording so far.
        """
        if self._unmarked_ns and self._unmarked_ns >= WORTH_RATIO * recorded_ns:
            yield (
                f"{self._unmarked} short Python garbage collections (the longest took "
                f"{self._longest_unmarked_ns / 1e6:.2f} ms) are not marked; together they took "
                f"{self._unmarked_ns / 1e9:.2f} of {recorded_ns / 1e9:.2f} s"
            )

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = 0 if self._switch.off or not self._steps.active else perf_counter_ns()
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
