"""Where findings lie that several ranks share, so that the same thing on many ranks is reported once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def place(ranks: Sequence[int]) -> dict[str, Any]:
    """For programs: `rank` of one, `ranks` of several."""
    numbers = sorted(set(ranks))
    return {"rank": numbers[0]} if len(numbers) == 1 else {"ranks": numbers}


def shared(ranks: Sequence[int], worst: int) -> dict[str, Any]:
    """For the words of a message: `ranks`, and `worst_rank`, whose figures it gives; None if there is no other."""
    numbers = sorted(set(ranks))
    return {"ranks": numbers, "worst_rank": worst if len(numbers) > 1 else None}
