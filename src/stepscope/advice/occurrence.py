"""In which steps a cost occurs, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.advice.base import Per
from stepscope.advice.units import Unit
from stepscope.limits import limit
from stepscope.present import plural
from stepscope.selection import describe_numbers

NAMED = 6
"""Steps that are named before they are only counted."""


@dataclass(frozen=True)
class Limits:
    """When the steps in which a cost lies are named; of rules that do."""

    stalled_ratio: float = limit(
        0.5, "of a cost, in stalled steps, from which these are named", "chosen by us: else it is in all steps"
    )


def is_stalling(row: dict[str, Any], limits: Limits) -> bool:
    """Whether most of a cost lies in steps that stall.

    Args:
        row: Of `lost_time`.
        limits: What most of it is.
    """
    return bool(0 < row["stalled_ns"] >= limits.stalled_ratio * row["lost_ns"] and row["period"] != 1)


def occurrence(row: dict[str, Any], unit: Unit, limits: Limits) -> str:
    """In which steps most of a cost lies, e.g. `in every 4th step`, `in step 21`; empty if all steps share it.

    Args:
        row: Of `lost_time`.
        unit: What its steps are.
        limits: What most of it is.
    """
    steps = row["stalled_steps"]
    if not is_stalling(row, limits):
        return ""
    if row["period"] is not None:
        return f"in every {_ordinal(row['period'])} {unit.per}"
    if len(steps) <= NAMED:
        return in_steps(steps, unit.per)
    return f"in {len(steps)} of {plural(row['steps'], unit.per)}"


def in_steps(steps: Sequence[int], per: Per = "step") -> str:
    """Which steps, e.g. `in step 3`, `in steps 3-5,9`; empty if there are none."""
    if not steps:
        return ""
    return f"in {per}{'' if len(steps) == 1 else 's'} {describe_numbers(steps)}"


def occurrence_facts(row: dict[str, Any]) -> dict[str, Any]:
    """The same as evidence."""
    names = ("lost_ns", "recorded_ns", "steps", "stalled_steps", "stalled_ns", "period")
    return {name: row[name] for name in names}


def _ordinal(number: int) -> str:
    """A number as a place in a row.

    Examples:
        >>> [_ordinal(number) for number in (2, 3, 4, 11, 21)]
        ['2nd', '3rd', '4th', '11th', '21st']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
