"""When a window of operators is long enough, and when the next one begins."""

from __future__ import annotations

MOST_COST_NS = 500_000_000
"""Ending a window costs time in proportion to what it recorded. Windows that cost more than this are made shorter: what
is lost in a crash, the memory they take and the longest pause in training get less, while the sum of costs stays."""
LEAST_NS = 250_000_000
"""They do not get shorter than this, or as asked for if that is less: there would be too many files."""


FIRST_NS = 50_000_000
"""Windows are so long while it is not known how many events a step has: it takes some 1.5 us at least to record one, so
that none of these holds more than `MOST_EVENTS` by much."""
MOST_EVENTS = 50_000
"""A window holds about so many at most: ended, each takes some 2.2 kB (torch 2.13, with shapes), in the process and, as
far as it is changed there, in the one that writes. A window is one step at least."""
MOST_SHARE = 0.5
"""Of the time since a window began, what ending it may take. If it takes more, the next one waits until it does not."""


WORTH_NS = 50_000_000
"""A window that takes less processor time to end is followed by no pause."""


class WindowTiming:
    """Says after which step a window ends, and after which the next one begins.

    Ranks of one job take their steps together, so a rank that pauses to end its window makes the others wait. Windows
    therefore end with steps whose number is a multiple of a power of two, of which ranks with about the same length of
    step choose the same: they pause together.

    Args:
        window_ns: Length of a window, at most.
        counts: The number of events in windows will be told. Until it is, windows are as short as can be.
        spares: Windows may wait, where ending them takes longer than `MOST_SHARE`; else all steps are in one.
    """

    def __init__(self, window_ns: int, *, counts: bool = False, spares: bool = False) -> None:
        self._asked_ns = self._window_ns = window_ns
        self.awaits_count = counts
        """It is not known yet how many events a step has: the first window is not written yet."""
        self._spares = spares
        self._start_ns = 0
        self._first_step = 1
        self._most_steps = 0
        self._resume_ns = 0

    def began(self, step: int, now_ns: int) -> None:
        """A window begins with `step`."""
        self._first_step, self._start_ns = step, now_ns

    def is_over(self, step: int, now_ns: int) -> bool:
        """Whether the window ends with `step`, which ends now."""
        window_ns = min(self._window_ns, FIRST_NS) if self.awaits_count else self._window_ns
        spent_ns = now_ns - self._start_ns
        if spent_ns >= window_ns or (self._most_steps and step % self._most_steps == 0):
            return True
        if 2 * spent_ns < window_ns:
            return False
        steps = step - self._first_step + 1
        fitting = steps * window_ns // max(spent_ns, 1)
        return step % _power_of_two(fitting) == 0

    def counted(self, events: int, steps: int) -> None:
        """A window of so many steps held so many events. Called from any thread."""
        if steps > 0 and events > 0:
            self._most_steps = _power_of_two(MOST_EVENTS * steps // events)
            self.awaits_count = False

    def cost(self, cost_ns: int, now_ns: int = 0, worked_ns: int = 0) -> None:
        """The last window has ended.

        Args:
            cost_ns: How long that took.
            now_ns: Now.
            worked_ns: Processor time that it took: a thread that waits for a busy machine is no reason to record less.
        """
        if cost_ns > MOST_COST_NS:
            least_ns = min(LEAST_NS, self._asked_ns)
            self._window_ns = max(self._window_ns * MOST_COST_NS // cost_ns, least_ns)
        resume_ns = self._start_ns + round(cost_ns / MOST_SHARE)
        may_pause = self._spares and worked_ns >= WORTH_NS
        self._resume_ns = resume_ns if may_pause and resume_ns > now_ns else 0

    def refused(self, now_ns: int) -> None:
        """No window could begin: try again later."""
        self._resume_ns = now_ns + min(LEAST_NS, self._asked_ns)

    def resumes(self, step: int, now_ns: int) -> bool:
        """Whether the next window begins after `step`, which ends now.

        After a pause it begins behind a multiple of a power of two about as long as the pause, so that most windows of
        one rank are windows of the others, too: a call is matched over ranks where all of them recorded it.
        """
        if not self._resume_ns:
            return True
        passed = step - self._first_step + 1
        return now_ns >= self._resume_ns and step % max(self._most_steps, _power_of_two(passed)) == 0


def _power_of_two(number: int) -> int:
    """The largest that is not above `number`; 1 at least."""
    return 1 << max(number.bit_length() - 1, 0)
