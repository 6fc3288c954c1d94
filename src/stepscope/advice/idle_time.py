"""All ranks stand idle for the same reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.loader_texts import GENERAL, loader_action, loader_facts
from stepscope.advice.platforms import CPU, CUDA, MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.units import unit_of
from stepscope.analysis.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When idle time is worth a finding."""

    idle_ratio: float = limit(0.10, "of the step, median rank", "our own: below it the device is well fed")
    data_ratio: float = limit(0.05, "of the step, for data loading", "the PyTorch profiler's own advice")


LIMITS = Limits()

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
        "stands idle during Python's garbage collection",
        "The collector stops the thread that trains.",
        {(None, None): "Call gc.freeze() after warm-up and gc.collect() at fixed steps, or raise gc.set_threshold()."},
    ),
    "python": (
        "runs Python code outside any operator",
        "Between the framework's operators the training thread runs plain Python.",
        {
            (None, None): "Profile the script's own code in the step; move work out of the loop or into the loader's "
            "workers."
        },
    ),
}
"""Cause to verb, reason and action."""

OF_DEVICES = ("dispatch", "synchronisation")
"""Causes that only work on a device has: on a CPU the host launches nothing and waits for nothing."""


@rule("idle-time")
def idle_time(
    idle: pl.DataFrame,
    breakdown: pl.DataFrame,
    loader: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report a cause of idle time that the median rank suffers in every step.

    A rank that is slower than the others is the matter of `slow-rank`; here the median over all ranks counts. The
    saving is the median idle time of that cause. Of the loader that was waited for longest, its workers say what
    helps.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    if not step_ns:
        return
    # A step without a cause has 0 of it, and that 0 counts in the median.
    steps = breakdown.select("rank", "step")
    slowest = None if loader is None else loader.sort("wait_ns", descending=True).row(0, named=True)
    unit, platform = unit_of(breakdown), platform_of(ranks)
    for cause, (verb, why, action) in TEXTS.items():
        per_step = steps.join(idle.filter(pl.col("cause") == cause), on=["rank", "step"], how="left")
        typical = median(per_step, pl.col("idle_ns").fill_null(0))
        ratio = typical / step_ns
        loading = cause == "data_loading"
        if platform.device == CPU and cause in OF_DEVICES:
            continue
        if ratio >= (limits.data_ratio if loading else limits.idle_ratio):
            yield Finding(
                rule="idle-time",
                summary=f"The typical rank {verb}: {ms(typical)} {unit.of(step_ns)} ({ratio:.0%}).",
                cause=why,
                action=loader_action(slowest, platform) if loading else platform.pick(action),
                saving_ns=round(typical),
                saving_ratio=ratio,
                evidence={
                    "cause": cause,
                    "idle_ns": round(typical),
                    "window_ns": round(step_ns),
                    **(loader_facts(slowest) if loading else {}),
                },
                per=unit.per,
            )
