"""Whether a cost comes back every so many steps."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a cost is said to come back every so many steps."""

    regular_ratio: float = limit(
        0.75,
        "of the cost, on the beat; and of the beats, with a cost",
        "chosen by us: one odd step in four is still regular",
    )
    beats: int = limit(3, "times that the cost comes back", "chosen by us: fewer prove nothing")
    distances: int = limit(
        3, "distances between costly steps that are tried, the most frequent first", "chosen by us: more find chance"
    )


def period(steps: Sequence[int], costs: Sequence[int], limits: Limits = Limits()) -> int | None:
    """After how many steps a cost comes back, 1 if in every step; None if it does not come back regularly.

    A period that is too short has beats without a cost, one that is too long leaves costs beside its beats.

    Args:
        steps: Numbers of the steps in order; some may be missing.
        costs: What each cost; 0 for nothing.
        limits: What counts as regular.

    Examples:
        >>> period(range(1, 10), [0, 0, 9, 0, 0, 9, 0, 1, 9]), period([4, 5, 6], [9, 8, 9])
        (3, 1)
        >>> period(range(1, 8), [0, 7, 0, 0, 0, 9, 9]) is None
        True
    """
    total = sum(costs)
    for length in _distances(steps, costs, limits.distances):
        by_beat: dict[int, list[int]] = {}
        for step, cost in zip(steps, costs, strict=True):
            by_beat.setdefault(step % length, []).append(cost)
        beats = max(by_beat.values(), key=sum)
        hits = sum(cost > 0 for cost in beats)
        if hits >= max(limits.beats, limits.regular_ratio * len(beats)) and sum(beats) >= limits.regular_ratio * total:
            return length
    return None


def _distances(steps: Sequence[int], costs: Sequence[int], most: int) -> Iterator[int]:
    """The most frequent distances between a costly step and the next, the short ones first."""
    hits = [step for step, cost in zip(steps, costs, strict=True) if cost > 0]
    counted = Counter(later - step for step, later in itertools.pairwise(hits) if later > step)
    yield from sorted(length for length, _ in counted.most_common(most))
