"""Whether a difference between the steps of two sides is more than noise.

The test is Mann and Whitney's: each value of one side is compared with each of the other. It assumes no distribution,
and a few steps that stand out weigh no more than others. Its probability is exact while there are few steps: the share
of all ways to divide the same values between the sides that differ as much. Steps count as independent.

Of many comparisons some look significant by chance, so their probabilities are adjusted together (Benjamini and
Hochberg: of those that are called significant, at most the level is expected to be noise).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.analysis.parameters import RULE_OPTIONS
from stepscope.limits import limit

EXACT = 24
"""Steps of both sides together up to which the probability is exact."""

VERDICTS = ("more", "less", "noise", "too few", "same", "small", "added", "removed", "untested")
"""`more` and `less`: the new side needs more or less, beyond noise. `noise`: steps of one side differ as much.
`too few`: so few steps cannot tell. `same`: hardly any difference. `small`: too small a part of the step to matter.
`added`, `removed`: on one side only. `untested`: one figure a side, no steps."""


@dataclass(frozen=True)
class Limits:
    """What counts as a difference."""

    level: float = limit(0.05, "probability", "customary: of this many differences called significant, one is noise")
    steps: int = limit(4, "steps on each side", "with three each, even values without overlap differ by chance in 10 %")
    same_ratio: float = limit(0.005, "of the larger side", "chosen by us: a difference below it is worth no work")
    small_ratio: float = limit(0.001, "of the step", "chosen by us: what takes less on both sides is not tested")


LIMITS = Limits()

NAME = "compare"
"""What the limits are called in a file of limits, and in `Run.with_limits`."""

RULE_OPTIONS[NAME] = {"limits": LIMITS}


def probability(base: Sequence[float], new: Sequence[float]) -> float:
    """How probable it is that steps without any difference differ as much as these, in either direction.

    Examples:
        >>> round(probability([1, 2, 3, 4], [5, 6, 7, 8]), 4)  # 2 of 70 ways to divide eight values
        0.0286
        >>> probability([1, 2, 3, 4], [1, 2, 3, 4])
        1.0
    """
    twice = _twice_ranks([*base, *new])
    if len(set(twice)) == 1:
        return 1.0
    own, count, size = sum(twice[: len(base)]), len(base), len(twice)
    if size <= EXACT:
        return _exact(tuple(sorted(twice)), count, own)
    mean = count * (size + 1)
    ties = sum(n**3 - n for n in Counter(twice).values())
    variance = count * (size - count) / 3 * (size + 1 - ties / (size * (size - 1)))
    apart = max(abs(own - mean) - 1, 0)
    return math.erfc(apart / math.sqrt(2 * variance))


def _twice_ranks(values: Sequence[float]) -> list[int]:
    """Two times the rank of each value, from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, start = [0] * len(values), 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            found[place] = start + end + 2
        start = end + 1
    return found


@functools.lru_cache(1024)
def _ways(ranks: tuple[int, ...], count: int) -> dict[int, int]:
    """Sum of `count` of the ranks to the number of ways to choose them."""
    sums: list[Counter[int]] = [Counter({0: 1})] + [Counter() for _ in range(count)]
    for rank in ranks:
        for chosen in range(count, 0, -1):
            for total, ways in sums[chosen - 1].items():
                sums[chosen][total + rank] += ways
    return dict(sums[count])


def _exact(ranks: tuple[int, ...], count: int, own: int) -> float:
    ways, mean = _ways(ranks, count), count * (len(ranks) + 1)
    as_far = sum(number for total, number in ways.items() if abs(total - mean) >= abs(own - mean))
    return as_far / sum(ways.values())


def adjusted(probabilities: Sequence[float | None]) -> list[float | None]:
    """Probabilities of several comparisons, adjusted for their number (Benjamini and Hochberg); None if not tested.

    Examples:
        >>> adjusted([0.01, None, 0.04, 0.03])
        [0.03, None, 0.04, 0.04]
    """
    tested = sorted((p, place) for place, p in enumerate(probabilities) if p is not None)
    found: list[float | None] = [None] * len(probabilities)
    least = 1.0
    for number in range(len(tested), 0, -1):
        p, place = tested[number - 1]
        least = min(least, p * len(tested) / number)
        found[place] = least
    return found


def are_apart(base: Sequence[float], new: Sequence[float]) -> bool:
    """Whether all values of one side are above all of the other."""
    return max(base) < min(new) or max(new) < min(base)
