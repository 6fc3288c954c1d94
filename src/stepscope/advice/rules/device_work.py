"""What rules about operators on a device share: what these cost a step, on which ranks, and what mending them saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from stepscope.advice.finding import HIGH_RATIO, MEDIUM_RATIO, Per, Severity, per_of
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO
from stepscope.analysis.rank_lists import listed

NAMED = 3
"""Number of operators that a sentence names."""


@dataclass(frozen=True)
class Cost:
    """What something costs the ranks that have it.

    Args:
        ranks: These ranks, the one that it costs most first.
        cost_ns: What it costs this rank, per step, or of the whole recording if that has no steps.
        ratio: The same as a share of its step; 0 if steps are unknown.
        saving_ns: What mending it saves the job: what the rank loses that loses least, if all ranks have it. If only
            some do, others may set the pace of the job, so it is unknown: 0.
        saving_ratio: The same as a share of the step.
        per: What it is counted per.
    """

    ranks: tuple[int, ...]
    cost_ns: int
    ratio: float
    saving_ns: int
    saving_ratio: float
    per: Per

    @property
    def severity(self) -> Severity:
        """How much it costs the ranks that have it."""
        return "high" if self.ratio >= HIGH_RATIO else "medium" if self.ratio >= MEDIUM_RATIO else "low"


def cost_of(found: pl.DataFrame, every: Sequence[int], breakdown: pl.DataFrame | None) -> Cost:
    """What some operators cost.

    Args:
        found: Their `rank` and what each costs in all steps (`cost_ns`).
        every: All ranks that could have such operators.
        breakdown: The analysis of that name, for the number and length of steps; None if unknown.
    """
    sums = found.group_by("rank").agg(pl.col("cost_ns").sum())
    if breakdown is None or breakdown.is_empty():
        steps = sums.select("rank", number=pl.lit(1), step_ns=pl.lit(0.0))
    else:
        steps = breakdown.group_by("rank").agg(number=pl.len(), step_ns=pl.col("window_ns").mean())
    each = (
        sums.join(steps, on="rank").with_columns(own=pl.col("cost_ns") / pl.col("number")).sort(-pl.col("own"), "rank")
    )
    if each.is_empty():
        return Cost(tuple(sums["rank"].sort()), 0, 0.0, 0, 0.0, "recording")
    worst, least = each.row(0, named=True), each.row(-1, named=True)
    by_all = set(every) <= {*each["rank"]}
    return Cost(
        ranks=tuple(each["rank"]),
        cost_ns=round(worst["own"]),
        ratio=worst["own"] / worst["step_ns"] if worst["step_ns"] else 0.0,
        saving_ns=round(least["own"]) if by_all else 0,
        saving_ratio=least["own"] / least["step_ns"] if by_all and least["step_ns"] else 0.0,
        per=per_of(breakdown),
    )


class Saving(NamedTuple):
    """What mending something saves: time, the share of the step, and whether a replay shows it."""

    time_ns: int
    ratio: float
    replayed: bool

    def claimed(self) -> dict[str, Any]:
        """The saving as arguments of `Finding`."""
        return {"saving_ns": self.time_ns, "saving_ratio": self.ratio, "replayed": self.replayed}


NONE = Saving(0, 0.0, replayed=False)
"""An unknown saving."""


def saving_of(item: str, savings: pl.DataFrame | None, cost: Cost) -> Saving:
    """What mending something saves, by replay; else what it costs the rank that it costs least.

    Args:
        item: An item of `operator_savings`.
        savings: The analysis of that name; None if the job cannot be replayed.
        cost: What it costs.
    """
    if savings is not None and cost.per != "recording":
        trusted = (pl.col("item") == item) & (pl.col("error_ratio").abs() <= TRUSTED_RATIO)
        for row in savings.filter(trusted).iter_rows(named=True):
            return Saving(row["saving_ns"], row["saving_ratio"], replayed=True)
    return Saving(cost.saving_ns, cost.saving_ratio, replayed=False)


def computes_late(ranks: Sequence[int], slow_ranks: pl.DataFrame | None) -> bool:
    """Whether the job waits for one of these ranks because of what it computes (`slow_ranks`)."""
    if slow_ranks is None:
        return False
    texts = slow_ranks.filter(pl.col("kind") == "computing")["ranks"]
    return not {rank for text in texts for rank in listed(text)}.isdisjoint(ranks)


def operator_names(rows: pl.DataFrame, by: str) -> list[str]:
    """The types (else names) of the operators with the greatest sums of a column, greatest first."""
    sums = rows.group_by(pl.coalesce("type", "name").alias("what")).agg(pl.col(by).sum())
    found: list[str] = sums.sort(-pl.col(by), "what")["what"].to_list()
    return found
