"""Training waits for a compiler: once at the start, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of, platform_of
from stepscope.advice.messages import Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.compile_time_words import MESSAGES
from stepscope.advice.stopping import code_of, names_of, span_of, stopped, worst_call
from stepscope.analysis.modules.recompilations import NEITHER, SIZES, TYPES
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
    launch_calls: int = limit(20, "calls per step that compile an operator", "the Ascend advisor's limit")
    launch_ratio: float = limit(0.01, "of the mean step, for these calls", "chosen by us: less is not worth a finding")
    again_steps: int = limit(
        2, "steps after the first that compile again", "chosen by us: a single one is usually the smaller last batch"
    )


@rule(
    "compile-time",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "compile", yields=("compile",)),
    dimension="schedule",
    computed=Text(
        "Sums the time that compilers take on each rank, in the first step and outside all steps (`once`), in later "
        "steps (`again`), and in calls that compile operators as they are launched (`launch`). The saving of "
        "compiling again is its sum divided by the number of recorded steps; of compiling at launch, the idle time "
        "meanwhile; compiling once is a cost of the job and not of a step, so none is claimed.",
        "累加各 rank 上编译器占用的时间，分为首步和各步之外（`once`）、之后的步（`again`）以及下发算子时的编译调用"
        "（`launch`）。重复编译的节省为其总和除以记录的步数，下发时编译的节省为其间的空闲时间；"
        "只编译一次是作业的开销而不是每步的开销，因此不计节省。",
    ),
    shows=("compile_time", "recompilations", "compile_calls"),
    explains=("slow-rank:compile", "long-step:compile"),
)
def compile_time(
    compile_time: pl.DataFrame,
    steps: pl.LazyFrame | None = None,
    compile_calls: pl.DataFrame | None = None,
    breakdown: pl.DataFrame | None = None,
    recompilations: pl.DataFrame | None = None,
    compiled_searches: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks that wait for a compiler at the start, ranks that compile again in later steps, and ranks that
    compile operators as they are launched.

    Compiling once is a cost of the job, not of a step, so no saving is claimed. Compiling again in at least
    `again_steps` later steps is claimed as the mean over all recorded steps (or iterations, if no steps are marked);
    down to nothing if the compiler has given up by the last step.
    """
    launching: list[int] = []
    if compile_calls is not None and breakdown is not None and platform_of(ranks).device != CPU:
        for finding in _at_launch(compile_calls, breakdown, limits):
            launching = finding.ranks
            yield finding
    once, again = _slow(compile_time.filter(~pl.col("rank").is_in(launching)), limits)
    if once:
        facts = {name: once[0][name] for name in ("compile_ns", "steps", "ratio")}
        message, sides = _first(recompilations, once[0])
        yield Finding(
            rule="compile-time",
            message=message,
            parameters={**facts, **sides, "outside": 1 if once[0]["steps"] and once[0]["is_outside"] else None},
            evidence={"kind": "once", **facts},
            where={"steps": once[0]["steps"]} if once[0]["steps"] else {},
            confidence="certain",
        ).on(row["rank"] for row in once)
    if again:
        facts = {name: again[0][name] for name in ("compile_ns", "steps", "ratio", "times")}
        recorded_steps = again[0]["recorded_steps"]
        message, what = _reason(recompilations, again[0])
        facts |= what
        yield Finding(
            rule="compile-time",
            message=message,
            parameters={**facts, "step_count": len(facts["steps"])},
            saving_ns=round(facts["compile_ns"] / max(recorded_steps or 1, 1)),
            saving_ratio=facts["ratio"],
            saving_low_ns=0 if _has_ended(compiled_searches, again[0]["rank"]) else -1,
            per=per_of(steps),
            where={"steps": facts["steps"]},
            evidence={"kind": "again", **facts, "recorded_steps": recorded_steps},
            confidence="certain",
        ).on(row["rank"] for row in again)


def _at_launch(calls: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits) -> Iterator[Finding]:
    """Ranks that compile operators as they are launched."""
    many = (pl.col("calls") >= limits.launch_calls) & (pl.col("total_ns") >= limits.launch_ratio * pl.col("step_ns"))
    found = stopped(calls, breakdown, many)
    if found is None:
        return
    numbers = {"idle_ns": found.idle_ns, "total_ns": found.total_ns, "calls": found.calls, "step_ns": found.step_ns}
    yield Finding(
        rule="compile-time",
        message="launch",
        parameters={**numbers, "ratio": found.idle_ratio, "names": names_of(calls, found.ranks)},
        **found.saving(per_of(breakdown)),
        evidence={"kind": "launch", **numbers},
        confidence="certain",
        code=code_of(calls, found.ranks),
        span_ns=span_of(worst := worst_call(calls, found.ranks)),
        span_rank=worst["rank"],
    ).on(found.ranks)


def _has_ended(compiled_searches: pl.DataFrame | None, rank: int) -> bool:
    """Whether the compiler has given up on a rank by its last step (`recompile-limit`), so that it costs no more."""
    if compiled_searches is None:
        return False
    return compiled_searches.filter((pl.col("rank") == rank) & pl.col("last_missed")).height > 0


def _first(recompilations: pl.DataFrame | None, once: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The message for a rank that compiles once: what it compiles may have run in a version before."""
    if recompilations is None:
        return "once", {}
    rows = recompilations.filter((pl.col("rank") == once["rank"]) & pl.col("step").is_in(once["steps"]))
    if rows.is_empty() or not (rows["version"].fill_null(0) > 0).all():
        return "once", {}
    sizes = rows.filter(pl.col("varied") == SIZES)
    return "anew", _sides(sizes) if sizes.height else dict.fromkeys(("before", "after"))


def _sides(rows: pl.DataFrame) -> dict[str, Any]:
    """The first input that differs, as sentences have it."""
    return {side: rows[side][0].strip("[]").replace(", ", "x") for side in ("before", "after")}


def _reason(recompilations: pl.DataFrame | None, again: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The message for a rank that compiles again, by what differs between versions, and how many there were."""
    if recompilations is None:
        return "again", {}
    rows = recompilations.filter((pl.col("rank") == again["rank"]) & pl.col("step").is_in(again["steps"]))
    made = {"times": rows.height} if rows.height else {}
    for varied, message in ((SIZES, "again_sizes"), (TYPES, "again_types")):
        differing = rows.filter(pl.col("varied") == varied)
        if differing.height:
            return message, {**made, **_sides(differing)}
    same = rows.filter(pl.col("varied") == NEITHER)
    # those that gave up have no inputs
    return ("again_values" if same.height and same.height == rows["ran"].sum() else "again"), made


def _slow(compile_time: pl.DataFrame, limits: Limits) -> list[list[dict[str, Any]]]:
    """The ranks that compile long enough at the start, and those in later steps; the longest time first."""
    in_step = pl.col("step").is_not_null()
    later = in_step & (in_step.cum_sum().over("rank") > 1)
    again = later & (later.sum().over("rank") >= limits.again_steps)
    spent, recorded = pl.col("compile_ns"), pl.col("recorded_ns")
    least_ratio = pl.when("again").then(limits.again_ratio).otherwise(limits.once_ratio)
    found = (
        compile_time.group_by("rank", "recorded_ns", "recorded_steps", again=again, maintain_order=True)
        .agg(
            pl.col("compile_ns", "times").sum(),
            steps=pl.col("step").drop_nulls(),
            is_outside=pl.col("step").is_null().any(),
        )
        .with_columns(ratio=pl.when(recorded > 0).then(spent / recorded).otherwise(0.0))
        .filter((spent > 0) & (spent >= least_ratio * recorded))
        .sort(-spent, maintain_order=True)
    )
    return [found.filter(pl.col("again") == which).to_dicts() for which in (False, True)]
