"""When a window of operators is long enough."""

from __future__ import annotations

MOST_COST_NS = 500_000_000
"""Ending a window costs time in proportion to what it recorded. Windows that cost more than this are made shorter: what
is lost in a crash, the memory they take and the longest pause in training get less, while the sum of costs stays."""
LEAST_NS = 250_000_000
"""They do not get shorter than this, or as asked for if that is less: there would be too many files."""


class Pace:
    """Says after which step a window ends.

    Ranks of one job take their steps together, so a rank that pauses to end its window makes the others wait. Windows
    therefore end with steps whose number is a multiple of a power of two, of which ranks with about the same length of
    step choose the same: they pause together.

    Args:
        window_ns: Length of a window, at most.
    """

    def __init__(self, window_ns: int) -> None:
        self._asked_ns = self._window_ns = window_ns
        self._start_ns = 0
        self._first_step = 1

    def began(self, step: int, now_ns: int) -> None:
        """A window begins with `step`."""
        self._first_step, self._start_ns = step, now_ns

    def is_over(self, step: int, now_ns: int) -> bool:
        """Whether the window ends with `step`, which ends now."""
        spent_ns = now_ns - self._start_ns
        if spent_ns >= self._window_ns:
            return True
        if 2 * spent_ns < self._window_ns:
            return False
        steps = step - self._first_step + 1
        fitting = steps * self._window_ns // max(spent_ns, 1)
        return step % (1 << max(fitting.bit_length() - 1, 0)) == 0

    def cost(self, cost_ns: int) -> None:
        """Ending the last window took so long."""
        if cost_ns > MOST_COST_NS:
            least_ns = min(LEAST_NS, self._asked_ns)
            self._window_ns = max(self._window_ns * MOST_COST_NS // cost_ns, least_ns)
