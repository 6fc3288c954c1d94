"""When ranks are slow, of how many steps that is known, and what follows for the words of a finding; how
the rule decides."""

from __future__ import annotations

from typing import Any

from stepscope.advice.finding import Per, Severity
from stepscope.advice.messages import Text
from stepscope.advice.occurrence import pattern_words
from stepscope.analysis.methods.timing import ONCE, ROTATING, STEADY

COMPUTED = Text(
    "Compares each rank's own work in each step with that of ranks of the same program and keeps "
    "what noise and chance do not explain (`slow_ranks`). The saving is the rank's share of what a "
    "replay of the job without this excess saves; if the ranks share no calls, nothing is replayed, and "
    "only what it costs is known. Ranks that are slow because of their experts are left to `expert-load`.",
    "将每个 rank 每步自身的工作与同程序的 rank 比较，只保留噪声和偶然无法解释的部分（`slow_ranks`）。"
    "节省为去掉这部分后重放作业所得中该 rank 的份额；若各 rank 没有共同的通信则无法重放，只知道其代价。"
    "因专家负载而慢的 rank 由 `expert-load` 报告。",
)
"""How the rule `slow-rank` decides."""

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
