"""Copies and fills that nothing covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.analysis.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed memory operations are worth a finding."""

    exposed_ratio: float = limit(0.05, "of the step, in which the device only copies", "our own")


LIMITS = Limits()


@rule("memory-copies")
def memory_copies(breakdown: pl.DataFrame, limits: Limits = LIMITS) -> Iterator[Finding]:
    """Report memory operations that neither computing nor communication covers (median rank and step)."""
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed = median(breakdown, pl.col("memory_not_overlapped_ns"))
    ratio = exposed / step_ns if step_ns else 0.0
    if ratio >= limits.exposed_ratio:
        yield Finding(
            rule="memory-copies",
            summary=f"The device only copies memory for {ms(exposed)} of a {ms(step_ns)} step ({ratio:.0%}).",
            cause="Copies run on the stream that computes, or from pageable host memory, which blocks.",
            action="Pin host memory, copy with non_blocking=True on its own stream, and fetch the next batch early.",
            saving_ns=round(exposed),
            saving_ratio=ratio,
            evidence={"memory_not_overlapped_ns": round(exposed), "window_ns": round(step_ns)},
        )
