"""When ranks are slow, of how many steps that is known, and what follows for the words of a finding."""

from __future__ import annotations

from typing import Any

from stepscope.advice.finding import Per, Severity
from stepscope.advice.occurrence import pattern_words
from stepscope.analysis.methods.timing import ONCE, ROTATING, STEADY

FEW_STEPS = 2
"""Up to so many compared steps, the finding says how few they are; a single slow one of them is of medium severity at
most."""


def is_once(row: dict[str, Any]) -> bool:
    """Whether the ranks are slow in one step only."""
    return bool(row["pattern"] == ONCE)


def highest(row: dict[str, Any]) -> Severity:
    """How severe a finding may be."""
    return "medium" if is_once(row) and row["steps"] <= FEW_STEPS else "high"


def when(row: dict[str, Any], per: Per) -> dict[str, Any]:
    """When the ranks are slow, as parameters of the texts; None if always."""
    return {
        **pattern_words(row, per),
        "every": None if is_once(row) else 1,
        "normal": row["steps"] - 1 if is_once(row) else None,
        "few": row["steps"] if row["steps"] <= FEW_STEPS and per != "recording" else None,
        **ranged(row),
    }


def ranged(row: dict[str, Any]) -> dict[str, Any]:
    """What the range of a saving is made of, as parameters of the texts: the quartiles of the slow steps, if there are
    several."""
    late, steps, once = row["steps_late"], row["steps"], is_once(row)
    some = row["pattern"] not in (STEADY, ROTATING) and 1 < late < steps
    return {
        "slow_windows": late if some else None,
        "steps": steps,
        "ranged": None if once else 1,
        "single": 1 if once else None,
    }
