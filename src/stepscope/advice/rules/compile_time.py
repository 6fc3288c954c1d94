"""Training waits for a compiler: once at the start, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, Per
from stepscope.advice.platforms import Platform, platform_of
from stepscope.advice.ranks import place, shared
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.compile_time_words import MESSAGES
from stepscope.advice.units import per_of
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When compile time is worth a finding."""

    once_ratio: float = limit(
        0.05, "of the recorded time, for compiling at the start", "chosen by us: less is not worth a finding"
    )
    again_ratio: float = limit(
        0.03, "of the recorded time, for compiling later", "the Ascend advisor's limit for medium"
    )
    again_steps: int = limit(
        2, "steps after the first that compile again", "chosen by us: a single one is usually the smaller last batch"
    )


LIMITS = Limits()


@rule("compile-time", MESSAGES, claim=Claim(Turn.STOPPED, "compile", yields=("compile",)))
def compile_time(
    compile_time: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report ranks that wait for a compiler at the start, and ranks that compile again in later steps.

    Compiling once is a cost of the job, not of a step, so no saving is claimed. Compiling again in at least
    `again_steps` later steps is claimed as the mean over all recorded steps (or iterations, if no steps are marked).
    """
    found = [_of_rank(rows, limits) for rows in compile_time.partition_by("rank", maintain_order=True)]
    at_start = [row for row in found if row["once_ns"] >= limits.once_ratio * row["recorded_ns"]]
    later = [row for row in found if row["again_ns"] > 0 and row["again_ns"] >= limits.again_ratio * row["recorded_ns"]]
    per = per_of(steps)
    if at_start:
        yield _once(at_start, per, platform_of(ranks, [row["rank"] for row in at_start]))
    if later:
        yield _again(later, per, platform_of(ranks, [row["rank"] for row in later]))


def _of_rank(rows: pl.DataFrame, limits: Limits) -> dict[str, Any]:
    """The compile time of one rank at the start and in later steps."""
    again = rows.drop_nulls("step")[1:]
    if again.height < limits.again_steps:
        again = again.clear()
    once = rows.join(again, on="step", how="anti", nulls_equal=True, maintain_order="left")
    return {
        "rank": rows["rank"][0],
        "recorded_ns": rows["recorded_ns"][0],
        "recorded_steps": rows["recorded_steps"][0],
        "once_ns": once["compile_ns"].sum(),
        "once_steps": once["step"].drop_nulls().to_list(),
        "once_outside": once["step"].has_nulls(),
        "again_ns": again["compile_ns"].sum(),
        "again_steps": again["step"].to_list(),
        "times": again["times"].sum(),
    }


def _once(rows: list[dict[str, Any]], per: Per, platform: Platform) -> Finding:
    worst = max(rows, key=lambda row: row["once_ns"])
    ranks = [row["rank"] for row in rows]
    ratio = worst["once_ns"] / worst["recorded_ns"] if worst["recorded_ns"] else 0.0
    facts = {"compile_ns": worst["once_ns"], "steps": worst["once_steps"], "ratio": ratio}
    return Finding(
        rule="compile-time",
        message="once",
        parameters={
            **shared(ranks, worst["rank"]),
            **facts,
            "outside": 1 if worst["once_steps"] and worst["once_outside"] else None,
        },
        per=per,
        where=place(ranks),
        evidence={"kind": "once", **facts},
        platform=platform,
        least="medium",
    )


def _again(rows: list[dict[str, Any]], per: Per, platform: Platform) -> Finding:
    worst = max(rows, key=lambda row: row["again_ns"])
    ranks = [row["rank"] for row in rows]
    ratio = worst["again_ns"] / worst["recorded_ns"] if worst["recorded_ns"] else 0.0
    facts = {"compile_ns": worst["again_ns"], "steps": worst["again_steps"], "ratio": ratio, "times": worst["times"]}
    return Finding(
        rule="compile-time",
        message="again",
        parameters={**shared(ranks, worst["rank"]), **facts, "step_count": len(worst["again_steps"])},
        saving_ns=round(worst["again_ns"] / max(worst["recorded_steps"] or 1, 1)),
        saving_ratio=ratio,
        per=per,
        where=place(ranks),
        evidence={"kind": "again", **facts, "recorded_steps": worst["recorded_steps"]},
        platform=platform,
    )
