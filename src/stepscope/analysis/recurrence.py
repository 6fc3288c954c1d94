"""Whether a cost comes back every so many steps."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

REGULAR = 0.75
"""Share of the cost that must fall on the beat, and share of the beats that must have a cost, chosen by us: one odd
step in four still counts as regular."""

BEATS = 3
"""Fewer times prove nothing."""

TRIED = 3
"""Distances between two costly steps that are tried, the most frequent first."""


def period(steps: Sequence[int], costs: Sequence[int]) -> int | None:
    """After how many steps a cost comes back, 1 if in every step; None if it does not come back regularly.

    A period that is too short has beats without a cost, one that is too long leaves costs beside its beats.

    Args:
        steps: Numbers of the steps in order; some may be missing.
        costs: What each cost; 0 for nothing.

    Examples:
        >>> period(range(1, 10), [0, 0, 9, 0, 0, 9, 0, 1, 9]), period([4, 5, 6], [9, 8, 9])
        (3, 1)
        >>> period(range(1, 8), [0, 7, 0, 0, 0, 9, 9]) is None
        True
    """
    total = sum(costs)
    for length in _distances(steps, costs):
        by_beat: dict[int, list[int]] = {}
        for step, cost in zip(steps, costs, strict=True):
            by_beat.setdefault(step % length, []).append(cost)
        beats = max(by_beat.values(), key=sum)
        hits = sum(cost > 0 for cost in beats)
        if hits >= max(BEATS, REGULAR * len(beats)) and sum(beats) >= REGULAR * total:
            return length
    return None


def _distances(steps: Sequence[int], costs: Sequence[int]) -> Iterator[int]:
    """The most frequent distances between a costly step and the next, the short ones first."""
    hits = [step for step, cost in zip(steps, costs, strict=True) if cost > 0]
    counted = Counter(later - step for step, later in itertools.pairwise(hits) if later > step)
    yield from sorted(length for length, _ in counted.most_common(TRIED))
