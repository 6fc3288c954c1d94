"""What the rules by the formulas of MindSpore Insight's cluster advice share.

They state distances from means. Where a replay of the job speaks about the same rank or link, they keep silent, and
they claim no saving. They are about what that tool reads, device step tables and totals, and ask for these first: all
else is slow to compute, and most recordings have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, Finding, place
from stepscope.advice.messages import Choices, Text

PERCENT = 100

_LIMIT = Text(" It is reported from {limit:percent} on.", "超过 {limit:percent} 时列出。")
_FORMULA = Text(
    " MindSpore Insight's cluster advice reports this from {limit:percent} on.",
    "按 MindSpore Insight 集群建议的公式，界限为 {limit:percent}。",
)


def by_formula(*causes: Text, cpu: Text | None = None) -> Choices:
    """Why something may be so, and by which formula it is stated.

    Args:
        causes: Words that one cause is made of.
        cpu: Other words for ranks without a device.
    """
    whole = sum(causes[1:], causes[0])
    own = whole if cpu is None else cpu
    return {
        (None, None): whole + _LIMIT,
        (None, CPU): own + _LIMIT,
        (MINDSPORE, None): whole + _FORMULA,
        (MINDSPORE, CPU): own + _FORMULA,
    }


def facts(advice: pl.DataFrame, *kinds: str) -> list[dict[str, Any]]:
    """The rows of `cluster_advice` of some kinds, the farthest first."""
    return advice.filter(pl.col("advice").is_in(kinds)).rows(named=True)


def stated(rule: str, message: str, row: Mapping[str, Any], where: Iterable[int] = (), **parameters: Any) -> Finding:
    """A finding that states a row of `cluster_advice`: of low severity, without a saving."""
    about = {name: value for name, value in row.items() if value is not None and name != "advice"}
    shared = {"off": row["off_ratio"] * PERCENT, "limit": row["limit_ratio"], "mean_of": row["mean_of"]}
    numbers = sorted(set(where))
    return Finding(
        rule=rule,
        message=message,
        parameters={**shared, **parameters},
        where=place(numbers) if numbers else {},
        evidence={"advice": row["advice"], **about},
        most="low",
        confidence="possible",  # a distance from a mean has many causes
    )
