"""How heavy the tails of a job's noise are: the theta of the thresholds (see `limits`)."""

from __future__ import annotations

from math import exp

BINS = 41
FEW = 200
"""Increments below which theta is assumed."""
ASSUMED = 0.6
MOST, LEAST = 1.0, 0.12
KEPT = 40_000
TAIL_SHARE = 0.002
"""Of the increments, added as largest ones: what few samples cannot show."""
TAIL_SAMPLES = 2.0
STEPS_OF_SEARCH = 12


class Tails:
    """A histogram of increments of scores, of ranks that are not suspected.

    Args:
        most: Increments are between minus this and this.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._counts = [0.0] * BINS
        self._total = 0.0
        self._theta = ASSUMED
        self._stale = False

    def add(self, increment: float) -> None:
        """Count an increment; larger ones count as the largest."""
        increment = max(-self._most, min(self._most, increment))
        self._counts[round((increment / self._most + 1) / 2 * (BINS - 1))] += 1
        self._total += 1
        self._stale = True
        if self._total > KEPT:
            self._counts = [count / 2 for count in self._counts]
            self._total /= 2

    def theta(self) -> float:
        """The theta with `E[exp(theta * increment)] = 1`; 0 if no threshold would hold, as scores grow on average."""
        if self._total < FEW:
            return ASSUMED
        if self._stale:
            self._stale = False
            self._theta = self._solved()
        return self._theta

    def _solved(self) -> float:
        values = [(2 * n / (BINS - 1) - 1) * self._most for n in range(BINS)]
        shares = [count / self._total for count in self._counts]
        shares[-1] += TAIL_SHARE + TAIL_SAMPLES / self._total
        pairs = [(value, share) for value, share in zip(values, shares, strict=True) if share > 0]

        def grows(theta: float) -> bool:
            return sum(share * exp(theta * value) for value, share in pairs) > sum(share for _, share in pairs)

        if not grows(MOST):
            return MOST
        if grows(LEAST):
            return 0.0
        low, high = LEAST, MOST
        for _ in range(STEPS_OF_SEARCH):
            middle = (low + high) / 2
            low, high = (low, middle) if grows(middle) else (middle, high)
        return low
