"""Whether a cost recurs at a regular interval of steps."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a cost counts as recurring regularly."""

    regular_ratio: float = limit(
        0.75,
        "of the cost, in periodic steps; and of the periodic steps, with a cost",
        "chosen by us: one odd step in four is still regular",
    )
    beats: int = limit(3, "occurrences of the cost", "chosen by us: fewer prove nothing")
    distances: int = limit(
        3, "intervals between costly steps tried, the most frequent first", "chosen by us: more would find coincidences"
    )


def period(steps: Sequence[int], costs: Sequence[int], limits: Limits = Limits()) -> int | None:
    """The period in steps at which a cost recurs, 1 if in every step; None if it is irregular.

    If a period is too short, some of its steps have no cost; if it is too long, some costs lie outside its steps.

    Args:
        steps: Numbers of the steps in order; some may be missing.
        costs: Cost of each step; 0 for none.
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
    """The most frequent intervals between a costly step and the next, short ones first."""
    hits = [step for step, cost in zip(steps, costs, strict=True) if cost > 0]
    counted = Counter(later - step for step, later in itertools.pairwise(hits) if later > step)
    yield from sorted(length for length, _ in counted.most_common(most))
