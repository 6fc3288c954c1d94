"""Where two answers differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-6
"""Relative, and absolute below 1."""


class Figure(float):
    """A figure of ours that MindInsight shows rounded.

    Args:
        value: The exact one.
        digits: Digits that it shows behind the point.
        slack: How far its own is off before it is rounded, as it is made of rounded parts.
    """

    def __new__(cls, value: float, digits: int, slack: float = 0.0) -> Figure:
        made = super().__new__(cls, value)
        made.within = 0.5 * 10**-digits + slack + 1e-9
        return made

    within: float

    def is_shown_as(self, shown: float) -> bool:
        """Whether `shown` is what becomes of it."""
        return abs(shown - self) <= self.within * (1 + TOLERANCE)


@dataclass(frozen=True)
class Difference:
    """One place in two answers.

    Args:
        place: Keys and positions, e.g. `summary/tail` or `object/3/1`.
        theirs: What MindInsight says; `MISSING` where it says nothing.
        ours: What our functions say.
    """

    place: str
    theirs: Any
    ours: Any


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def differences(theirs: Any, ours: Any, place: str = "") -> Iterator[Difference]:
    """Compare two answers; equal within `TOLERANCE` is no difference, a list cut short is one difference."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            below = f"{place}/{key}" if place else str(key)
            yield from differences(theirs.get(key, MISSING), ours.get(key, MISSING), below)
        return
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{place}/{number}" if place else str(number))
        return
    if not _same(theirs, ours):
        yield Difference(place, theirs, ours)


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(ours, Figure) and isinstance(theirs, (int, float)):
        return ours.is_shown_as(theirs)
    if isinstance(ours, Figure) and isinstance(theirs, str) and theirs.endswith("%"):
        return ours.is_shown_as(float(theirs[:-1]))
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (theirs, ours))
    if numbers:
        return math.isclose(theirs, ours, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(theirs) is type(ours) and bool(theirs == ours)
