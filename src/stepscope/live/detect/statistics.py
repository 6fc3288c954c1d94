"""Robust statistics of short lists."""

from __future__ import annotations

from collections.abc import Sequence

LEVEL_ERROR = 1.2533
"""Standard error of a median over that of a mean, of normal values."""
MAD_TO_SIGMA = 1.4826
"""Standard deviation over the median absolute deviation, of normal values."""


def median(values: Sequence[float]) -> float:
    """The median; 0 of nothing."""
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return 0.0
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def lower_median(ordered: Sequence[float], apart: float) -> float:
    """The median of values in order; if the two in the middle are apart, so that half of all are larger, the lower."""
    n = len(ordered)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    return low if high - low > apart else (low + high) / 2


def lowest_group(values: Sequence[float], apart: float, enough_ratio: float) -> float:
    """The middle of the lowest values that stand together and are enough of all.

    Args:
        values: One at least.
        apart: Larger gaps separate groups.
        enough_ratio: Share of the values that a group must have to be what is normal. Of two values, one is.
    """
    ordered = sorted(values)
    enough = max(1.0, enough_ratio * len(ordered))
    first = 0
    for n in range(1, len(ordered) + 1):
        if n == len(ordered) or ordered[n] - ordered[n - 1] > apart:
            if n - first >= enough:
                return median(ordered[first:n])
            first = n
    return median(ordered)
