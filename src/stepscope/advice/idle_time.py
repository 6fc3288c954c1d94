"""All ranks stand idle for the same reason, in every step or in some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.function_texts import idle_functions_of
from stepscope.advice.loader_texts import GENERAL, loader_action, loader_facts
from stepscope.advice.occurrence import Limits as OccurrenceLimits
from stepscope.advice.occurrence import is_stalling, occurrence, occurrence_facts
from stepscope.advice.platforms import CPU, CUDA, MINDSPORE, PYTORCH, Choices, Platform, platform_of
from stepscope.advice.units import Unit, unit_of
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(OccurrenceLimits):
    """When idle time is worth a finding."""

    idle_ratio: float = limit(0.10, "of the recording, median rank", "chosen by us: below it the device is well fed")
    data_ratio: float = limit(0.05, "of the recording, for data loading", "the PyTorch profiler's own advice")
    paused_ratio: float = limit(
        0.20, "of the recording, for pauses in Python code and unknown causes", "chosen by us: in every step alike"
    )
    unexplained_ratio: float = limit(
        0.50, "of the recording, for Python code and unknown causes", "chosen by us: Python between operators is usual"
    )
    function_ratio: float = limit(
        0.10, "of a cause's idle time, from which a Python function is named", "chosen by us: the dearest few matter"
    )
    much_idle_ratio: float = limit(
        0.50, "of the time, from which the verdict always names idle time", "chosen by us as `unexplained_ratio`"
    )


LIMITS = Limits()

UNEXPLAINED = ("python", "other")
"""Causes of which every healthy job has some between its operators. Of these it matters whether there are pauses, or
steps that stall, or very much of it."""

NOT_RECORDED = "not_recorded"
"""Cause of idle time where only the device was recorded. What would remove it is unknown, so it claims no saving."""

_LAUNCHES = "Launch less and larger work: bigger batches, "
_SYNCHRONISING = "Remove synchronising calls from the step, or do them every N steps"

TEXTS: dict[str, tuple[str, str, Choices]] = {
    "data_loading": (
        "waits for input data",
        "The training loop waits in its data loader while there is nothing to compute.",
        GENERAL,
    ),
    "dispatch": (
        "stands idle because the host launches work too late",
        "The host needs longer to launch the next kernel than the device needs to run the last one.",
        {
            (PYTORCH, CUDA): _LAUNCHES + "fused or compiled operators (torch.compile, CUDA graphs), fused optimizers; "
            "move Python work and logging out of the step.",
            (PYTORCH, None): _LAUNCHES + "fused or compiled operators (torch.compile), fused optimizers; move Python "
            "work and logging out of the step.",
            (MINDSPORE, None): _LAUNCHES + "a compiled graph in place of single operators (mindspore.jit), several "
            "steps sunk at once (sink_size); move Python work and logging out of the step.",
            (None, None): _LAUNCHES + "fused or compiled operators; move Python work and logging out of the step.",
        },
    ),
    "synchronisation": (
        "stands idle around synchronising calls",
        "The host waits for the device (values read back, copies to the host, explicit synchronisation) and only then "
        "launches further work.",
        {
            (PYTORCH, None): _SYNCHRONISING + " (`.item()`, prints of tensors); use non-blocking copies.",
            (MINDSPORE, None): _SYNCHRONISING + " (`.asnumpy()`, prints of tensors).",
            (None, None): _SYNCHRONISING + ".",
        },
    ),
    "garbage_collection": (
        "is stopped by Python's garbage collection",
        "While Python collects garbage, the training thread does nothing else.",
        {
            (None, None): "If the script or a library calls gc.collect() in the training loop, call it less often or "
            "not at all. Otherwise, call gc.freeze() after warm-up, so that collections skip the objects that stay, "
            "and raise gc.set_threshold()."
        },
    ),
    "python": (
        "runs Python code outside any operator",
        "Between the framework's operators the training thread runs plain Python.",
        {
            (None, None): "Profile the script's own code in the step (`stepscope functions`); move work out of the "
            "loop or into the loader's workers."
        },
    ),
    "other": (
        "does nothing that was recorded",
        "No operator, data loader, checkpoint or garbage collection ran; most likely the training thread runs Python "
        "code or waits (logging, evaluation, locks, sleep).",
        {
            (MINDSPORE, CPU): "Run a sampling profiler such as py-spy beside the job to see which Python function it "
            "is: MindSpore records no Python functions on a CPU.",
            (
                None,
                None,
            ): "Record Python functions to see which one it is: `stepscope record --stacks` (with_stack=True "
            "of the framework's profiler), then `stepscope functions`.",
        },
    ),
    NOT_RECORDED: (
        "stands idle for a cause that was not recorded",
        "Only the device was recorded: neither what its host ran nor when it launched work is known.",
        {
            (None, None): "Record the host as well, for a few steps: `stepscope record`, or the framework's profiler "
            "with ProfilerActivity.CPU beside the device's activity."
        },
    ),
}
"""Cause to verb, reason and action."""

NO_FUNCTION = (
    "No Python function ran either: look for what stops the process itself (swapping, other processes on its "
    "processors, a suspended container), and for work on threads that were not recorded."
)

OF_DEVICES = ("dispatch", "synchronisation", NOT_RECORDED)
"""Causes that only work on a device has: on a CPU the host launches nothing, waits for nothing and is the work."""


_SHARED = ("lost", "paused", "stalled")
"""Times of which `lost_time` has the share in what was recorded."""


@rule("idle-time")
def idle_time(
    lost_time: pl.DataFrame,
    breakdown: pl.DataFrame,
    loader: pl.DataFrame | None,
    idle_functions: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report a cause of idle time that costs the median rank much, in every step or in some.

    A rank that is slower than the others is the matter of `slow-rank`; here the median over all ranks counts, of what
    each lost in all steps but its first. The saving is that total, as an average over the steps; of Python code and
    unknown causes, where some steps stall, what these cost beyond ordinary ones. Where only the device was recorded,
    the finding asks for the host and claims nothing. Of the loader that was waited for longest, its workers say what
    helps.
    """
    slowest = None if loader is None else loader.sort("wait_ns", descending=True).row(0, named=True)
    unit, platform = unit_of(breakdown), platform_of(ranks)
    for cause, (verb, why, action) in TEXTS.items():
        if platform.device == CPU and cause in OF_DEVICES:
            continue
        row = _typical(lost_time, cause)
        if row is None or not _is_worth_it(row, cause, limits):
            continue
        loading = cause == "data_loading"
        in_loop = cause in UNEXPLAINED or (loading and slowest is not None and not slowest["workers"])
        told = ""
        if in_loop:
            told = idle_functions_of(idle_functions, row["rank"], cause, limits.function_ratio)
        lost_ns = _claimed(row, cause, limits)
        step_ns = row["recorded_ns"] / row["steps"]
        saved_ns = 0 if cause == NOT_RECORDED else lost_ns
        yield Finding(
            rule="idle-time",
            summary=f"The typical rank {verb}: {_how_much(row, lost_ns, unit, limits)}.",
            cause=why + told,
            action=loader_action(slowest, platform) if loading else _action(action, cause, idle_functions, platform),
            saving_ns=round(saved_ns / row["steps"]),
            saving_ratio=saved_ns / row["recorded_ns"],
            evidence={
                "cause": cause,
                "idle_ns": row["mean_ns"],
                "window_ns": round(step_ns),
                **occurrence_facts(row),
                **(loader_facts(slowest) if loading else {}),
            },
            least="medium" if cause == NOT_RECORDED else "low",
            per=unit.per,
        )


def _typical(lost: pl.DataFrame, cause: str) -> dict[str, Any] | None:
    """What a cause cost the median rank a step, of two the lesser; None if it cost this rank nothing.

    Its shares are those of the median rank's step: ranks that wait for each other lose alike, but where few steps were
    recorded, the windows of some are far shorter than those of others.
    """
    rows = lost.filter(pl.col("cause") == cause).sort(pl.col("lost_ns") / pl.col("steps"), "rank")
    free = lost["rank"].n_unique() - rows.height  # ranks without the cause come first
    place = (rows.height + free - 1) // 2 - free
    if place < 0 or not rows["lost_ns"][place]:
        return None
    row = rows.row(place, named=True)
    step_ns = median(lost.unique("rank"), pl.col("recorded_ns") / pl.col("steps"))
    recorded = max(round(step_ns * row["steps"]), 1)
    return {**row, "recorded_ns": recorded, **{f"{what}_ratio": row[f"{what}_ns"] / recorded for what in _SHARED}}


def _is_worth_it(row: dict[str, Any], cause: str, limits: Limits) -> bool:
    if cause == "data_loading":
        return bool(row["lost_ratio"] >= limits.data_ratio)
    if cause not in UNEXPLAINED:
        return bool(row["lost_ratio"] >= limits.idle_ratio)
    in_most = row["median_ns"] * row["steps"] / max(row["recorded_ns"], 1)
    return bool(
        row["lost_ratio"] >= limits.unexplained_ratio
        or row["stalled_ratio"] >= limits.idle_ratio
        or row["paused_ratio"] >= limits.paused_ratio
        or (cause == "python" and in_most >= limits.idle_ratio)
    )


def _claimed(row: dict[str, Any], cause: str, limits: Limits) -> int:
    """What of the idle time can be saved; of unexplained causes what stalls cost beyond ordinary steps, if any do."""
    stalls = row["stalled_ratio"] >= limits.idle_ratio or is_stalling(row, limits)
    ends = row["period"] != 1
    return int(row["stalled_ns"] if cause in UNEXPLAINED and stalls and ends else row["lost_ns"])


def _how_much(row: dict[str, Any], lost_ns: int, unit: Unit, limits: Limits) -> str:
    """The time lost: of a step, or of all steps and in which."""
    recorded, steps = row["recorded_ns"], row["steps"]
    if when := occurrence(row | {"lost_ns": lost_ns}, unit, limits):
        most = "" if lost_ns < row["lost_ns"] else "most of it "
        return f"{ms(lost_ns)} of {ms(recorded)} ({lost_ns / recorded:.0%}), {most}{when}"
    return f"{ms(lost_ns / steps)} {unit.of(recorded / steps)} ({lost_ns / recorded:.0%})"


def _action(action: Choices, cause: str, functions: pl.DataFrame | None, platform: Platform) -> str:
    """What to do; of unknown causes it matters whether Python functions were recorded."""
    return NO_FUNCTION if cause == "other" and functions is not None else platform.pick(action)
