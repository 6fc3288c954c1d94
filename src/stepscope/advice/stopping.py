"""What calls of the host that stop its device cost a job: which ranks, in which steps, how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Per, saved
from stepscope.advice.messages import Text
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.methods.stopping_calls import each_step

FEW = 0.75
"""Share of the steps below which those in which something occurs are named, chosen by us."""

PART = 0.25
"""Share of the greatest cost of a step from which a step counts, chosen by us."""

NAMED = 3
"""Lines of code that a finding names."""

BASIS = Text(
    "at most the idle time during them, on the rank that loses most in each {per:noun}",
    "不超过其间的空闲时间（取每{per:noun}损失最多的 rank）",
)
"""Why the saving of such a finding has a range."""


@dataclass(frozen=True)
class Stopped:
    """What it costs.

    Args:
        ranks: The ranks, the one that loses most first.
        idle_ns: Idle time of that rank in its mean step.
        total_ns: Time of its calls in the mean step.
        calls: Its calls in the mean step.
        step_ns: The median step.
        cost_ns: The greatest idle time of a rank in each step, summed.
        steps: Number of steps, without a rank's first unless it is the only one.
        every: Number of all steps.
        when: In which steps it occurs (for the formatter `when`); None if in most.
    """

    ranks: Sequence[int]
    idle_ns: float
    total_ns: float
    calls: float
    step_ns: float
    cost_ns: int
    steps: int
    every: int
    when: dict[str, Any] | None

    @property
    def idle_ratio(self) -> float:
        return self.idle_ns / self.step_ns if self.step_ns else 0.0

    @property
    def mean_ns(self) -> float:
        """The greatest idle time of a rank in the mean step."""
        return self.cost_ns / max(self.steps, 1)

    def saving(self, per: Per) -> dict[str, Any]:
        """The saving as arguments of `Finding`: nothing at least, as other work may take its place."""
        ratio = min(self.mean_ns / self.step_ns, 1.0) if self.step_ns else 0.0
        saving = saved(per, self.mean_ns, self.steps)
        return {"saving_ns": saving, "saving_ratio": ratio, "saving_low_ns": 0, "per": per}


def stopped(calls: pl.DataFrame, breakdown: pl.DataFrame, least: pl.Expr) -> Stopped | None:
    """What some calls cost; None if no rank loses enough.

    Args:
        calls: Rows with `rank`, `step`, `calls`, `total_ns`, `idle_ns`.
        breakdown: The answer of that name.
        least: Whether a rank loses enough, by `calls`, `total_ns`, `idle_ns` and `step_ns` of its mean step.
    """
    rows = each_step(calls, breakdown)
    means = rows.group_by("rank", maintain_order=True).agg(
        pl.col("calls", "total_ns", "idle_ns").mean(), step_ns=pl.col("window_ns").mean()
    )
    slow = means.filter(least & (pl.col("calls") > 0)).sort(
        "idle_ns", "total_ns", "rank", descending=[True, True, False]
    )
    if slow.is_empty():
        return None
    of_them = rows.filter(pl.col("rank").is_in(slow["rank"].implode()))
    greatest = of_them.group_by("step").agg(pl.col("idle_ns", "total_ns").max()).sort("step")
    judged = greatest["idle_ns"] if greatest["idle_ns"].sum() else greatest["total_ns"]
    in_steps = greatest.filter(judged >= PART * (judged.max() or 0))["step"].to_list()  # type: ignore[operator]
    few = len(in_steps) <= FEW * greatest.height
    worst = slow.row(0, named=True)
    return Stopped(
        ranks=slow["rank"].to_list(),
        idle_ns=worst["idle_ns"],
        total_ns=worst["total_ns"],
        calls=worst["calls"],
        step_ns=median(breakdown, pl.col("window_ns")),
        cost_ns=int(greatest["idle_ns"].sum()),
        steps=greatest.height,
        every=breakdown["step"].n_unique(),
        when={"period": None, "steps": in_steps, "of": greatest.height} if few else None,
    )


def worst_call(calls: pl.DataFrame, ranks: Sequence[int]) -> dict[str, Any]:
    """The longest of some ranks' calls: its row."""
    rows = calls.filter(pl.col("rank").is_in(list(ranks)))
    order = rows.sort("longest_ns", "rank", "step", "name", descending=[True, False, False, False], nulls_last=True)
    return order.row(0, named=True)


def span_of(row: dict[str, Any]) -> tuple[int, int]:
    """When the longest call of a row ran."""
    start: int = row["longest_start_ns"]
    return start, start + int(row["longest_ns"])


def code_of(calls: pl.DataFrame, ranks: Sequence[int]) -> tuple[str, ...]:
    """The user's functions that made some ranks' calls, the one that costs most first."""
    rows = calls.filter(pl.col("rank").is_in(list(ranks))).drop_nulls("place")
    sums = rows.group_by("place").agg(pl.col("idle_ns", "total_ns").sum()).sort(
        "idle_ns", "total_ns", "place", descending=[True, True, False]
    )  # fmt: skip
    return tuple(sums["place"].head(NAMED))


def names_of(calls: pl.DataFrame, ranks: Sequence[int]) -> list[str]:
    """The names of some ranks' calls, the one that takes longest first."""
    rows = calls.filter(pl.col("rank").is_in(list(ranks)))
    sums = rows.group_by("name").agg(pl.col("total_ns").sum()).sort("total_ns", "name", descending=[True, False])
    return sums["name"].head(NAMED).to_list()
