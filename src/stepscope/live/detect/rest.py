"""What is added to own times that are a small part of a step, before ranks are compared.

A phase of half a millisecond in a step of 24 ms varies by tens of percent and nobody minds; if it grows to 20 ms, it is
the whole slowdown. So own times are compared as logarithms only where that matters: they are filled up with a constant
so that the smallest excess that is tested is just the smallest that is reported, as a share of a step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from stepscope.live.detect.limits import Tuning
from stepscope.live.detect.statistics import median

ROUNDS = 48
"""Rounds from which it is known. Then it stays, since another one would change all values."""


class Rest:
    """Learns the constant in the first rounds.

    Args:
        tuning: How the times are tested.
        part_ratio: Share of the work that the times cover, about.
    """

    def __init__(self, tuning: Tuning, part_ratio: float) -> None:
        self._least_ratio = part_ratio * tuning.cost_ratio / tuning.shift
        self._steps: deque[float] = deque(maxlen=ROUNDS)
        self._owns: deque[float] = deque(maxlen=ROUNDS)
        self._rounds = 0
        self._known_ns = 0.0

    def restart(self) -> None:
        """Another program may run now."""
        self._rounds = 0
        self._steps.clear()
        self._owns.clear()

    def of_round(self, step_ns: float, own_ns: Iterable[float]) -> float:
        """The constant, ns a step.

        Args:
            step_ns: Of this round.
            own_ns: Of the ranks in this round; one at least.
        """
        if self._rounds < ROUNDS:
            self._rounds += 1
            ordered = sorted(own_ns)
            self._steps.append(step_ns)
            self._owns.append(ordered[(len(ordered) - 1) // 2])
            usual = median(list(self._owns))
            self._known_ns = max(0.0, self._least_ratio * median(list(self._steps)) - usual)
        return self._known_ns
