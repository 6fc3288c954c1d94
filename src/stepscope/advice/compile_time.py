"""Training waits for a compiler: once at the start, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.occurrence import in_steps
from stepscope.advice.platforms import MINDSPORE, PYTORCH, Choices, Platform, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import Unit, unit_of
from stepscope.limits import limit
from stepscope.present import duration, plural


@dataclass(frozen=True)
class Limits:
    """When compile time is worth a finding."""

    once_ratio: float = limit(
        0.05, "of the recorded time, for compiling at the start", "chosen by us: below it is small"
    )
    again_ratio: float = limit(
        0.03, "of the recorded time, for compiling later", "the Ascend advisor's limit for medium"
    )
    again_steps: int = limit(
        2, "steps after the first that compile again", "chosen by us: one is a last, smaller batch"
    )


LIMITS = Limits()

ONCE: Choices = {
    (PYTORCH, None): (
        "Nothing needs to change if the job runs long enough: this time is paid at each start. To pay less, keep the "
        "compiler's cache between starts (TORCHINDUCTOR_CACHE_DIR on a disk that stays), compile one repeated block "
        "instead of the whole model, and avoid mode='max-autotune'. Record later steps to see training alone."
    ),
    (MINDSPORE, None): (
        "Nothing needs to change if the job runs long enough: this time is paid at each start. To pay less, keep the "
        "compiler's cache between starts (MS_COMPILER_CACHE_ENABLE=1, and MS_COMPILER_CACHE_PATH on a disk that "
        "stays). Record later steps to see training alone."
    ),
    (None, None): (
        "Nothing needs to change if the job runs long enough: this time is paid at each start. To pay less, keep the "
        "compiler's cache between starts. Record later steps to see training alone."
    ),
}
AGAIN: Choices = {
    (PYTORCH, None): (
        "Find what changed with TORCH_LOGS=recompiles. If sizes vary, use torch.compile(dynamic=True) or "
        "torch._dynamo.mark_dynamic, or pad batches to a few sizes and set drop_last=True in the loader; keep Python "
        "numbers and flags that change out of the compiled function."
    ),
    (MINDSPORE, None): (
        "If sizes vary, declare them as dynamic (Cell.set_inputs with None in the shape), or pad batches to a few "
        "sizes and leave out the last, smaller one (batch(drop_remainder=True)); pass numbers that change as Tensor; "
        "create compiled cells and functions once, before the loop."
    ),
    (None, None): (
        "If sizes vary, declare them as dynamic, or pad batches to a few sizes and leave out the last, smaller batch; "
        "keep Python numbers and flags that change out of the compiled function."
    ),
}


@rule("compile-time")
def compile_time(
    compile_time: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report ranks that wait for a compiler at the start, and ranks that compile again in later steps.

    What is compiled once is a total of the job and not of a step, so it claims no saving of a step. What is compiled
    again in at least `again_steps` later steps is claimed as its mean over all recorded steps. Where none are marked,
    iterations that were found take their place.
    """
    found = [_of_rank(rows, limits) for rows in compile_time.partition_by("rank", maintain_order=True)]
    at_start = [row for row in found if row["once_ns"] >= limits.once_ratio * row["recorded_ns"]]
    later = [row for row in found if row["again_ns"] > 0 and row["again_ns"] >= limits.again_ratio * row["recorded_ns"]]
    unit = unit_of(steps)
    if at_start:
        yield _once(at_start, unit, platform_of(ranks, [row["rank"] for row in at_start]))
    if later:
        yield _again(later, unit, platform_of(ranks, [row["rank"] for row in later]))


def _of_rank(rows: pl.DataFrame, limits: Limits) -> dict[str, Any]:
    """What one rank compiled at the start, and what again in later steps."""
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


def _once(rows: list[dict[str, Any]], unit: Unit, platform: Platform) -> Finding:
    worst = max(rows, key=lambda row: row["once_ns"])
    ranks = [row["rank"] for row in rows]
    ratio = worst["once_ns"] / worst["recorded_ns"] if worst["recorded_ns"] else 0.0
    beside = f" and outside of {unit.per}s" if worst["once_steps"] and worst["once_outside"] else ""
    where = _behind(in_steps(worst["once_steps"], unit.per)) + beside + on_rank(worst["rank"], ranks)
    return Finding(
        rule="compile-time",
        summary=(
            f"{named(ranks, 'spends', 'spend')} {duration(worst['once_ns'])} compiling{where} "
            f"({ratio:.0%} of the recorded time), once."
        ),
        cause="A compiled function is traced and compiled when it first runs; training waits meanwhile.",
        action=platform.pick(ONCE),
        saving_ns=0,
        saving_ratio=0.0,
        where=place(ranks),
        evidence={"kind": "once", "compile_ns": worst["once_ns"], "steps": worst["once_steps"], "ratio": ratio},
        least="medium",
        per=unit.per,
    )


def _again(rows: list[dict[str, Any]], unit: Unit, platform: Platform) -> Finding:
    worst = max(rows, key=lambda row: row["again_ns"])
    ranks = [row["rank"] for row in rows]
    ratio = worst["again_ns"] / worst["recorded_ns"] if worst["recorded_ns"] else 0.0
    steps = len(worst["again_steps"])
    return Finding(
        rule="compile-time",
        summary=(
            f"{named(ranks, 'compiles', 'compile')} again in {plural(steps, unit.per)} after the first"
            f"{on_rank(worst['rank'], ranks)}: {duration(worst['again_ns'])} in total, "
            f"{ratio:.0%} of the recorded time."
        ),
        cause=f"The compiled code did not fit what came later{_behind(in_steps(worst['again_steps'], unit.per))}, so "
        f"it was made anew {plural(worst['times'], 'time')}. Sizes of batches that vary are the usual reason.",
        action=platform.pick(AGAIN),
        saving_ns=round(worst["again_ns"] / max(worst["recorded_steps"] or 1, 1)),
        saving_ratio=ratio,
        where=place(ranks),
        evidence={
            "kind": "again",
            "compile_ns": worst["again_ns"],
            "steps": worst["again_steps"],
            "recorded_steps": worst["recorded_steps"],
            "times": worst["times"],
            "ratio": ratio,
        },
        per=unit.per,
    )


def _behind(words: str) -> str:
    """Words behind others; nothing if there are none."""
    return f" {words}" if words else ""
