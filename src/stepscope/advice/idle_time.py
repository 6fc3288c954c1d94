"""All ranks stand idle for the same reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.loader_texts import GENERAL, loader_action, loader_facts
from stepscope.analysis.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When idle time is worth a finding."""

    idle_ratio: float = limit(0.10, "of the step, median rank", "our own: below it the device is well fed")
    data_ratio: float = limit(0.05, "of the step, for data loading", "the PyTorch profiler's own advice")


LIMITS = Limits()

TEXTS: dict[str, tuple[str, str, str]] = {
    "data_loading": (
        "waits for input data",
        "The training loop waits in its data loader while there is nothing to compute.",
        GENERAL,
    ),
    "dispatch": (
        "stands idle because the host launches work too late",
        "The host needs longer to launch the next kernel than the device needs to run the last one.",
        "Launch less and larger work: bigger batches, fused or compiled operators (torch.compile, CUDA graphs), fused "
        "optimizers; move Python work and logging out of the step.",
    ),
    "synchronisation": (
        "stands idle around synchronising calls",
        "The host waits for the device (`.item()`, copies to the host, explicit synchronisation) and only then "
        "launches further work.",
        "Remove synchronising calls from the step, or do them every N steps; use non-blocking copies.",
    ),
    "garbage_collection": (
        "stands idle during Python's garbage collection",
        "The collector stops the host thread that launches work.",
        "Call gc.freeze() after warm-up and gc.collect() at fixed steps, or raise gc.set_threshold().",
    ),
    "python": (
        "runs Python code outside any operator",
        "Between the framework's operators the training thread runs plain Python.",
        "Profile the script's own code in the step; move work out of the loop or into the loader's workers.",
    ),
}


@rule("idle-time")
def idle_time(
    idle: pl.DataFrame, breakdown: pl.DataFrame, loader: pl.DataFrame | None, limits: Limits = LIMITS
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
    for cause, (verb, why, action) in TEXTS.items():
        per_step = steps.join(idle.filter(pl.col("cause") == cause), on=["rank", "step"], how="left")
        typical = median(per_step, pl.col("idle_ns").fill_null(0))
        ratio = typical / step_ns
        loading = cause == "data_loading"
        if ratio >= (limits.data_ratio if loading else limits.idle_ratio):
            yield Finding(
                rule="idle-time",
                summary=f"The typical rank {verb}: {ms(typical)} of a {ms(step_ns)} step ({ratio:.0%}).",
                cause=why,
                action=loader_action(slowest) if loading else action,
                saving_ns=round(typical),
                saving_ratio=ratio,
                evidence={
                    "cause": cause,
                    "idle_ns": round(typical),
                    "window_ns": round(step_ns),
                    **(loader_facts(slowest) if loading else {}),
                },
            )
