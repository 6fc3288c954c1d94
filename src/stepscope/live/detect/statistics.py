"""Robust statistics of short lists."""

from __future__ import annotations

from collections.abc import Sequence

LEVEL_ERROR = 1.2533
"""Standard error of a median over that of a mean, of normal values."""
MAD_TO_SIGMA = 1.4826
"""Standard deviation over the median absolute deviation, of normal values."""

CLEAR = 10.0
"""A level so many times as high as what was before is another one."""


def median(values: Sequence[float]) -> float:
    """The median; 0 of nothing."""
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return 0.0
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def onset(values: Sequence[float], least: int, small: float) -> int:
    """Index of the first value of a level that is higher than before; 0 if all values belong to it.

    It parts the values in two with the least squared deviations from the mean of each part.

    Args:
        least: The higher level has at least so many values.
        small: A first part with a larger median belongs to the higher level, too, if that is not `CLEAR` times as high.
    """
    n, total = len(values), sum(values)
    best, found, before = 0.0, 0, 0.0
    for k in range(1, n - least + 1):
        before += values[k - 1]
        apart = (total - before) / (n - k) - before / k
        gain = apart * apart * k * (n - k) if apart > 0 else 0.0
        if gain > best:
            best, found = gain, k
    if not found:
        return 0
    level = (total - sum(values[:found])) / (n - found)
    return found if median(values[:found]) < max(small, level / CLEAR) else 0


def onset_round(values: Sequence[float], last: int, least: int, small: float) -> int | None:
    """The round in which the higher level began (`onset`), where the last value is that of round `last`; None if none
    began."""
    first = onset(values, least, small)
    return last - len(values) + 1 + first if first else None


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
