"""How a finding that several ranks share names them, so that it is reported once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def place(ranks: Sequence[int]) -> dict[str, Any]:
    """For programs: `rank` if there is one, `ranks` if several."""
    numbers = sorted(set(ranks))
    return {"rank": numbers[0]} if len(numbers) == 1 else {"ranks": numbers}


def shared(ranks: Sequence[int], worst: int) -> dict[str, Any]:
    """For messages: `ranks`, and `worst_rank`, whose figures are shown; None if there is only one rank."""
    numbers = sorted(set(ranks))
    return {"ranks": numbers, "worst_rank": worst if len(numbers) > 1 else None}
