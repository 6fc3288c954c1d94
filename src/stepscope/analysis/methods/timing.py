"""In which way the late steps of a rank lie among its steps: all, since or until a step, periodic, sometimes, once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb

from stepscope.analysis.methods.chance import chance_of_late
from stepscope.analysis.methods.recurrence import period
from stepscope.limits import limit

STEADY, SINCE, UNTIL, PERIODIC = "steady", "since", "until", "periodic"
SOMETIMES, ONCE, ROTATING = "sometimes", "once", "rotating"


@dataclass(frozen=True)
class Limits:
    """When late steps form a pattern."""

    dense_ratio: float = limit(0.75, "of the steps of a stretch, late", "chosen by us: one odd step in four is noise")
    outside_ratio: float = limit(0.25, "of the late steps, outside of the stretch", "chosen by us, as in the stretch")
    stretch_steps: int = limit(3, "steps of a stretch", "chosen by us: fewer prove nothing")
    chance: float = limit(0.02, "probability, that a steady rank is not late outside", "chosen by us")


LIMITS = Limits()


@dataclass(frozen=True)
class Timing:
    """When a rank is late.

    Args:
        pattern: `steady`, `since`, `until`, `periodic`, `sometimes` or `once`.
        since_step: First late step, if the rank was not late before.
        until_step: Last late step, if it was not late afterwards.
        period: Steps from one late step to the next, if regular.
    """

    pattern: str
    since_step: int | None = None
    until_step: int | None = None
    period: int | None = None


def timing(steps: Sequence[int], late: Collection[int], limits: Limits = LIMITS) -> Timing:
    """How late steps lie among all steps of a rank.

    A rank that was late in the middle is late `until` a step, with `since_step`.

    Args:
        steps: All steps in order.
        late: The late ones, at least one.
        limits: What is a pattern.

    Examples:
        >>> timing(range(1, 11), {7, 8, 9, 10})
        Timing(pattern='since', since_step=7, until_step=None, period=None)
        >>> timing(range(1, 11), {1, 4, 7, 10})
        Timing(pattern='periodic', since_step=None, until_step=None, period=3)
    """
    if len(late) == 1 and len(steps) > 1:
        return Timing(ONCE)
    flags = [step in late for step in steps]
    first, last = _stretch(flags)
    inside, length = sum(flags[first : last + 1]), last + 1 - first
    dense = length >= limits.stretch_steps and inside >= limits.dense_ratio * length
    most = sum(flags) - inside <= limits.outside_ratio * sum(flags)
    left_out = len(steps) - length
    chance = (1 - (inside + 0.5) / (length + 1)) ** left_out
    changes = dense and most and left_out > 1 and chance <= limits.chance
    if changes and sum(flags) - inside <= limits.outside_ratio * left_out:
        since = steps[first] if first else None
        if last == len(steps) - 1:
            return Timing(SINCE, since)
        return Timing(UNTIL, since, steps[last])
    if sum(flags) >= limits.dense_ratio * len(steps):
        return Timing(STEADY)
    found = period(steps, [int(flag) for flag in flags])
    return Timing(SOMETIMES) if found in {None, 1} else Timing(PERIODIC, period=found)


def _stretch(flags: Sequence[bool]) -> tuple[int, int]:
    """First and last position of the stretch with most late steps more than others."""
    best, result, total, first = 0, (0, 0), 0, 0
    for position, flag in enumerate(flags):
        if total <= 0:
            total, first = 0, position
        total += 1 if flag else -1
        if total > best:
            best, result = total, (first, position)
    return result


def chance_of(steps: Sequence[int], late: Collection[int], others_late: int, others_steps: int) -> float:
    """Probability that a rank like the others is late so often, or so long without a break, or so regularly.

    Args:
        steps: All steps in order.
        late: The late ones.
        others_late: Number of times that any other rank is late.
        others_steps: Number of steps of the other ranks, added up.
    """
    n, k = len(steps), len(late)
    often = chance_of_late(k, n, others_late, others_steps)
    longest = run = 0
    for step in steps:
        run = run + 1 if step in late else 0
        longest = max(longest, run)
    long = (n - longest + 1) * chance_of_late(longest, longest, others_late, others_steps)
    places = [place for place, step in enumerate(steps) if step in late]
    regular = len({after - before for before, after in pairwise(places)}) == 1 and k > 2
    # at most as many regular choices of so many steps as there are steps
    evenly = often * min(1.0, n / comb(n, k)) if regular else 1.0
    return min(1.0, 2 * min(often, long, evenly))
