"""When a window of operators is long enough, when the next one begins, and which steps are in none."""

from __future__ import annotations

from collections.abc import Iterator

MOST_COST_NS = 500_000_000
"""Ending a window takes time in proportion to its events. If it takes longer than this, windows are made shorter: this
reduces the loss in a crash, the memory and the longest pause in training; the total cost stays the same."""
LEAST_NS = 250_000_000
"""Windows do not get shorter than this (or than requested, if less): there would be too many files."""

FIRST_NS = 50_000_000
"""Length of windows while the number of events per step is unknown: recording an event takes at least 1.5 us, so these
windows hardly exceed `MOST_EVENTS`."""
MOST_EVENTS = 50_000
"""Approximate maximum of events in a window: each takes about 2.2 kB (torch 2.13, with shapes) when the window ends, in
the process and, for changed pages, in the one that writes. A window is at least one step."""
MOST_SHARE = 0.5
"""Largest share of the time since a window began that ending it may take. If it takes more, the next one is delayed."""
LEAST_PAUSED_NS = 50_000_000
"""If ending a window takes less processor time than this, no pause follows."""

_MOST_RANGES = 5
"""Number of ranges to list; the rest are counted."""

_SPARED = (
    "so that recording takes at most about half of the time. The phases of these steps are still marked. To record "
    "operators in every step of a range, give steps=(first, last)"
)
_REFUSED = "because they could not be recorded there (another message gives the reason)"


class WindowTiming:
    """Decides after which step a window ends, and after which the next one begins.

    The ranks of a job run in lockstep, so a rank that pauses to end its window makes the others wait. Windows therefore
    end with steps whose number is a multiple of a power of two: ranks with about the same step time choose the same
    power and pause together.

    Args:
        window_ns: Maximum length of a window.
        counts: The number of events will be reported by `counted`. Until then, windows are as short as possible.
        spares: Skip steps if ending windows takes longer than `MOST_SHARE`; otherwise every step is in a window.
    """

    def __init__(self, window_ns: int, *, counts: bool = False, spares: bool = False) -> None:
        self._asked_ns = self._window_ns = window_ns
        self.awaits_count = counts
        """The number of events per step is still unknown: the first window is not written yet."""
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
        """A window of `steps` steps held `events` events. May be called from any thread."""
        if steps > 0 and events > 0:
            self._most_steps = _power_of_two(MOST_EVENTS * steps // events)
            self.awaits_count = False

    def cost(self, cost_ns: int, now_ns: int = 0, worked_ns: int = 0) -> None:
        """The last window has ended.

        Args:
            cost_ns: How long that took.
            now_ns: Current time.
            worked_ns: Its processor time: waiting for a busy machine is no reason to record less.
        """
        if cost_ns > MOST_COST_NS:
            least_ns = min(LEAST_NS, self._asked_ns)
            self._window_ns = max(self._window_ns * MOST_COST_NS // cost_ns, least_ns)
        resume_ns = self._start_ns + round(cost_ns / MOST_SHARE)
        may_pause = self._spares and worked_ns >= LEAST_PAUSED_NS
        self._resume_ns = resume_ns if may_pause and resume_ns > now_ns else 0

    def refused(self, now_ns: int) -> None:
        """The window could not begin: try again later."""
        self._resume_ns = now_ns + min(LEAST_NS, self._asked_ns)

    def resumes(self, step: int, now_ns: int) -> bool:
        """Whether the next window begins after `step`, which ends now.

        After a pause it begins after a multiple of a power of two about as long as the pause, so that windows of the
        ranks mostly coincide: a call can be matched across ranks only if all of them recorded it.
        """
        if not self._resume_ns:
            return True
        passed = step - self._first_step + 1
        return now_ns >= self._resume_ns and step % max(self._most_steps, _power_of_two(passed)) == 0


def _power_of_two(number: int) -> int:
    """The largest power of two up to `number`; at least 1."""
    return 1 << max(number.bit_length() - 1, 0)


class Missing:
    """Collects steps that were recorded without operators although operators were requested."""

    def __init__(self) -> None:
        self._ranges: dict[bool, list[list[int]]] = {True: [], False: []}

    def add(self, step: int, *, spared: bool) -> None:
        """Note that step `step` has no operators. Steps come in order.

        Args:
            step: Its number.
            spared: They were left out to save time; otherwise they could not be recorded.
        """
        ranges = self._ranges[spared]
        if ranges and ranges[-1][1] + 1 == step:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])

    def messages(self, steps: int) -> Iterator[str]:
        """Messages about what is missing in `steps` steps, why, and what to do."""
        for spared, ranges in self._ranges.items():
            if ranges:
                count = sum(last - first + 1 for first, last in ranges)
                why = _SPARED if spared else _REFUSED
                yield f"operators are missing in {count} of {steps} steps ({_named(ranges)}), {why}"


def _named(ranges: list[list[int]]) -> str:
    named = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES]]
    more = len(ranges) - _MOST_RANGES
    return ", ".join(named) + (f" and {more} more ranges" if more > 0 else "")
