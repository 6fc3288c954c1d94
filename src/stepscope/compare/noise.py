"""Whether a difference between the steps of two sides is more than noise.

The test is Mann and Whitney's: each value of one side is compared with each of the other. It assumes no distribution,
and a few steps that stand out weigh no more than others. Its probability is exact while there are few steps: the share
of all ways to divide the same values between the sides that differ as much.

Steps that follow one another resemble each other, as where a clock drifts, so they tell less than as many independent
ones. How much is estimated from how values of neighbouring steps go together (their ranks, both sides pooled), and the
test is made less sure by it, unless the sides are further apart than the steps of each are from one another. That takes
more than six steps on each side; with fewer they count as independent.

Of many comparisons some look significant by chance, so their probabilities are adjusted together (Benjamini and
Hochberg: of those that are called significant, at most the level is expected to be noise).
"""

from __future__ import annotations

import functools
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

from stepscope.analysis.parameters import RULE_OPTIONS
from stepscope.limits import limit

FEWEST = 7
"""Steps of a side from which on it is estimated how much neighbouring ones resemble each other. With fewer, the
estimate is nothing but noise."""

MOST_ALIKE = 0.98
"""The greatest resemblance of neighbouring steps that counts, as a correlation."""

EXACT = 24
"""Steps of both sides together up to which the probability is exact."""

VERDICTS = ("more", "less", "noise", "too few", "same", "small", "added", "removed", "untested")
"""`more` and `less`: the new side needs more or less, beyond noise. `noise`: steps of one side differ as much.
`too few`: all steps of one side are above those of the other, but so few cannot tell. `same`: hardly any difference.
`small`: too small a part of the step to matter. `added`, `removed`: on one side only. `untested`: one figure a side, no
steps."""


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


def probability_of_steps(base: Sequence[float], new: Sequence[float]) -> float:
    """As `probability`, of values in the order of steps, which may resemble their neighbours.

    Examples:
        >>> slow_drift = [n / 40 for n in range(40)]
        >>> probability(slow_drift[:20], slow_drift[20:]) < 1e-6
        True
        >>> probability_of_steps(slow_drift[:20], slow_drift[20:]) > 0.1
        True
    """
    p = probability(base, new)
    if p >= 1 or min(len(base), len(new)) < FEWEST:
        return p
    alike = _resemblance(base, new)
    if alike <= 0 or _are_far_apart(base, new):
        return p
    spread = (_spread(alike, len(base)) + _spread(alike, len(new))) / 2
    apart = -NormalDist().inv_cdf(max(p, sys.float_info.min) / 2)
    return math.erfc(apart / math.sqrt(2 * spread))


def _are_far_apart(base: Sequence[float], new: Sequence[float]) -> bool:
    """Whether both sides are further apart than the steps of each are: no drift explains that."""
    between = max(min(new) - max(base), min(base) - max(new))
    return between > max(max(side) - min(side) for side in (base, new))


def _resemblance(base: Sequence[float], new: Sequence[float]) -> float:
    """How much steps resemble the one before: the correlation of ranks within each side, both sides together, less
    the bias that it has in short series; at most `MOST_ALIKE`."""
    together = squares = 0.0
    for side in (base, new):
        ranks = _twice_ranks(side)
        off = [rank - (len(ranks) + 1) for rank in ranks]
        together += sum(one * other for one, other in pairwise(off))
        squares += sum(one * one for one in off)
    if not squares:
        return 0.0
    length = (len(base) + len(new)) / 2
    return min((length * together / squares + 1) / (length - 4), MOST_ALIKE)


def _spread(alike: float, length: int) -> float:
    """How many times as much as that of independent steps the mean of some steps varies."""
    return 1 + 2 * sum((1 - apart / length) * alike**apart for apart in range(1, length))


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
