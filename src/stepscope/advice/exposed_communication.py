"""Communication that computing does not hide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule


@dataclass(frozen=True)
class Limits:
    """When exposed transmission is worth a finding."""

    exposed_ratio: float = 0.10  # share of the step; the limit of the PyTorch profiler's own advice
    hideable_ratio: float = 0.5  # of the exposed transmission; the first and last calls of a step stay exposed


LIMITS = Limits()


@rule("exposed-communication")
def exposed_communication(
    segments: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = LIMITS
) -> Iterator[Finding]:
    """Report transmission that no computing covers, without the time that ranks merely wait for each other.

    The saving is the part of the median rank's exposed transmission that better overlap usually hides.
    """
    step_ns = breakdown.select(pl.col("window_ns").median()).item() or 0
    per_step = segments.group_by("rank", "step").agg(pl.col("transmit_ns").sum(), pl.col("wait_ns").sum())
    exposed = per_step.select(pl.col("transmit_ns").median()).item() or 0
    waiting = per_step.select(pl.col("wait_ns").median()).item() or 0
    ratio = exposed / step_ns if step_ns else 0.0
    if ratio >= limits.exposed_ratio:
        yield Finding(
            rule="exposed-communication",
            summary=f"Transmission that no computing covers takes {ms(exposed)} of a {ms(step_ns)} step ({ratio:.0%}).",
            cause="Collectives run when there is nothing left to compute beside them.",
            action=(
                "Start collectives earlier (gradient buckets, bucket size, parameter prefetch), accumulate "
                "gradients over micro-batches, send less (lower precision, compression), or use faster links."
            ),
            saving_ns=round(exposed * limits.hideable_ratio),
            saving_ratio=ratio * limits.hideable_ratio,
            evidence={"transmit_ns": round(exposed), "wait_ns": round(waiting), "window_ns": round(step_ns)},
        )
