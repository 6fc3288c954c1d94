"""Work of a helper thread in a training process, in slices: Python lets a thread that computes run for 5 ms before
others get a turn, which a step of training would notice."""

from __future__ import annotations

import time

_SLICE_NS = 150_000
"""Work at most this long without a break; chosen by us, about 1 % of a short step."""
_BREAK_S = 0.002


class Pace:
    """Takes breaks; call `step` between small pieces of work."""

    def __init__(self) -> None:
        self._since_ns = time.perf_counter_ns()

    def step(self) -> None:
        """Take a break if there was none for a while."""
        if time.perf_counter_ns() - self._since_ns > _SLICE_NS:
            time.sleep(_BREAK_S)
            self._since_ns = time.perf_counter_ns()
