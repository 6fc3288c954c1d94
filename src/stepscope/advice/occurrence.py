"""In which steps a cost occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepscope.advice.finding import Per
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a rule names the steps in which a cost occurs."""

    stalled_ratio: float = limit(
        0.5, "of a cost, in stalled steps, for these to be named", "chosen by us: with less, all steps share the cost"
    )


def is_stalling(row: dict[str, Any], limits: Limits) -> bool:
    """Whether most of a cost lies in stalled steps.

    Args:
        row: A row of `lost_time`.
        limits: What counts as most.
    """
    return bool(0 < row["stalled_ns"] >= limits.stalled_ratio * row["lost_ns"] and row["period"] != 1)


def occurrence(row: dict[str, Any], limits: Limits) -> dict[str, Any] | None:
    """In which steps most of a cost lies, for the formatter `when`; None if all steps share it.

    Args:
        row: A row of `lost_time`.
        limits: What counts as most.

    Returns:
        `period` (4 if it is every 4th step, or None), `steps` (which steps), `of` (how many steps there are).
    """
    if not is_stalling(row, limits) or (row["period"] is None and not row["stalled_steps"]):
        return None
    return {"period": row["period"], "steps": row["stalled_steps"], "of": row["steps"]}


def occurrence_facts(row: dict[str, Any]) -> dict[str, Any]:
    """The same steps as evidence."""
    names = ("lost_ns", "recorded_ns", "steps", "stalled_steps", "stalled_ns", "period")
    return {name: row[name] for name in names}


def pattern_words(row: dict[str, Any], per: Per) -> dict[str, Any]:
    """When something is slow, as parameters of messages: `when`, `slow_since`, `slow_until`; all None if always.

    Args:
        row: `pattern`, `slow_steps`, `period` and `steps` of it.
        per: What savings are per.
    """
    steps, pattern = row["slow_steps"], row["pattern"]
    known: dict[str, Any] = {"when": None, "slow_since": None, "slow_until": None}
    if not steps or per == "recording":
        return known
    if pattern == "since":
        known["slow_since"] = [steps[0]]
    elif pattern == "until":
        known["slow_until"] = [steps[-1]]
    elif pattern != "steady":
        known["when"] = {"period": row["period"], "steps": steps, "of": row["steps"]}
    return known


def late_steps(row: dict[str, Any]) -> dict[str, Any]:
    """The steps in which something is slow, as a place (`Finding.where`); empty if it always is.

    Args:
        row: `pattern` and `slow_steps` of it.
    """
    return {"steps": row["slow_steps"]} if row["slow_steps"] and row["pattern"] != "steady" else {}
