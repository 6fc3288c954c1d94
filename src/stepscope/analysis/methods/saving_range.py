"""Between what bounds a saving that a replay shows lies."""

from __future__ import annotations

OFF_RATIO = 0.05
"""How far a saving may be off in any case, as a share of it: more than in nine of ten simulated jobs."""

TRUSTED_RATIO = 0.05
"""Error of a replay up to which savings are believed: from there on, the study that introduced such replays leaves jobs
out ("Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025)."""


def saving_range(saving_ns: float, low_ns: float, high_ns: float) -> tuple[int, int]:
    """The bounds of a saving, at least `OFF_RATIO` away from it.

    Examples:
        >>> saving_range(100, 99, 120)
        (95, 120)
    """
    low, high = (1 - OFF_RATIO) * saving_ns, (1 + OFF_RATIO) * saving_ns
    return round(min(low_ns, low)), round(max(high_ns, high))
