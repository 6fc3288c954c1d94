"""How likely it is that a rank is late so often by chance, at the rate at which other ranks are late."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, comb, exp, lgamma, log, pi, sqrt

USUAL, UNUSUAL = 0.5, 9.5
"""What is assumed of the rate at which healthy ranks are late before any was seen: about one step in twenty."""


def chance_of_late(late: int, steps: int, others_late: int, others_steps: int) -> float:
    """Probability that a rank like the others is late in at least this many steps.

    The rate at which ranks are late is unknown; what the others show of it is one sample (beta-binomial distribution).

    Args:
        late: Number of steps in which the rank is late.
        steps: Number of its steps.
        others_late: Number of times that any other rank is late.
        others_steps: Number of steps of the other ranks, added up.

    Examples:
        >>> round(chance_of_late(3, 3, 0, 21), 5), round(chance_of_late(3, 3, 9, 21), 2)
        (6e-05, 0.04)
    """
    if late <= 0:
        return 1.0
    if late > steps:
        return 0.0
    a, b = others_late + USUAL, max(others_steps - others_late, 0) + UNUSUAL
    part = exp(_log_ways(late, steps) + _log_beta(late + a, steps - late + b) - _log_beta(a, b))
    total = part
    for k in range(late, steps):
        part *= (steps - k) / (k + 1) * (a + k) / (b + steps - k - 1)
        total += part
    return min(total, 1.0)


def chance_at_rate(late: int, steps: int, rate: float) -> float:
    """Probability of being late in at least this many steps at a known rate (binomial distribution).

    Examples:
        >>> round(chance_at_rate(2, 3, 0.5), 3)
        0.5
    """
    if late <= 0 or rate >= 1:
        return 1.0
    if late > steps or rate <= 0:
        return 0.0
    part = exp(_log_ways(late, steps) + late * log(rate) + (steps - late) * log(1 - rate))
    total = part
    for k in range(late, steps):
        part *= (steps - k) / (k + 1) * rate / (1 - rate)
        total += part
    return min(total, 1.0)


def chance_of_evenness(counts: Sequence[int], ranks: int) -> float:
    """Probability that as many stalls, of any ranks in any steps, are spread at least as evenly over the steps.

    Args:
        counts: Number of ranks that stall in each step.
        ranks: Number of ranks, which stall at most once in a step.

    Examples:
        >>> round(chance_of_evenness([1, 1], 2), 3), chance_of_evenness([2, 0], 2)
        (0.667, 1.0)
    """
    total, squares = sum(counts), sum(count**2 for count in counts)
    ways = {(0, 0): 1}
    for _ in counts:
        after: dict[tuple[int, int], int] = {}
        for (so_far, squared), number in ways.items():
            for count in range(min(ranks, total - so_far) + 1):
                if squared + count**2 > squares:
                    break
                key = so_far + count, squared + count**2
                after[key] = after.get(key, 0) + number * comb(ranks, count)
        ways = after
    found = sum(number for (so_far, _), number in ways.items() if so_far == total)
    return found / comb(ranks * len(counts), total)


def chance_of_score(score: float, freedom: int) -> float:
    """Probability that noise alone is at least so many standard deviations above its mean, if these are known from so
    many deviations only (Student's t distribution).

    Examples:
        >>> [round(chance_of_score(*given), 3) for given in ((6.314, 1), (2.015, 5), (1.812, 10))]
        [0.05, 0.05, 0.05]
    """
    if score <= 0:
        return 0.5
    # of the angle, the probability of deviations to both sides is a finite sum
    angle, cosine = atan2(score, sqrt(freedom)), freedom / (freedom + score**2)
    term = total = 1.0
    for k in range(2 + freedom % 2, freedom - 1, 2):
        term *= cosine * (k - 1) / k
        total += term
    if freedom % 2:
        part = sqrt(cosine) * score / sqrt(freedom + score**2) * total if freedom > 1 else 0.0
        inside = 2 / pi * (angle + part)
    else:
        inside = score / sqrt(freedom + score**2) * total
    return max(0.0, (1 - inside) / 2)


def _log_ways(late: int, steps: int) -> float:
    return lgamma(steps + 1) - lgamma(late + 1) - lgamma(steps - late + 1)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
