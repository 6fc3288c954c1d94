"""Copies and fills that nothing covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.platforms import CPU, MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.units import unit_of
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed memory operations are worth a finding."""

    exposed_ratio: float = limit(0.05, "of the step, in which the device only copies", "chosen by us")


LIMITS = Limits()

ACTIONS: Choices = {
    (PYTORCH, None): (
        "Pin host memory (pin_memory=True), copy with non_blocking=True on a stream of its own, and fetch the next "
        "batch early."
    ),
    (MINDSPORE, None): (
        "Let the data queue send batches to the device ahead of the step (data sinking), and keep copies to the host "
        "(`.asnumpy()`, prints of tensors) out of the step."
    ),
    (None, None): "Copy on a stream of its own, and fetch the next batch early.",
}


@rule("memory-copies")
def memory_copies(
    breakdown: pl.DataFrame, ranks: pl.LazyFrame | None = None, limits: Limits = LIMITS
) -> Iterator[Finding]:
    """Report memory operations that neither computing nor communication covers (median rank and step)."""
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed = median(breakdown, pl.col("memory_not_overlapped_ns"))
    ratio = exposed / step_ns if step_ns else 0.0
    unit, platform = unit_of(breakdown), platform_of(ranks)
    if ratio >= limits.exposed_ratio and platform.device != CPU:
        yield Finding(
            rule="memory-copies",
            summary=f"The device only copies memory for {ms(exposed)} {unit.of(step_ns)} ({ratio:.0%}).",
            cause="Copies run on the stream that computes, or from pageable host memory, which blocks.",
            action=platform.pick(ACTIONS),
            saving_ns=round(exposed),
            saving_ratio=ratio,
            evidence={"memory_not_overlapped_ns": round(exposed), "window_ns": round(step_ns)},
            per=unit.per,
        )
