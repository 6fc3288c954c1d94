"""Communication that computing does not hide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.slow_link import exposed_share
from stepscope.advice.units import unit_of
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed transmission is worth a finding."""

    exposed_ratio: float = limit(0.10, "of the step", "the PyTorch profiler's own advice")
    hideable_ratio: float = limit(0.5, "of the exposed transmission", "the first and last calls of a step stay exposed")


LIMITS = Limits()


@rule("exposed-communication")
def exposed_communication(
    segments: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_links: pl.DataFrame | None,
    slow_groups: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report transmission that no computing covers, without the time that ranks merely wait for each other.

    The saving is the part of the median rank's exposed transmission that better overlap usually hides, without what
    mending the slowest link or group saves already (`slow-link`, `slow-group`). Where it is unknown how much
    of the communication is waiting, no saving is claimed.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    per_step = segments.group_by("rank", "step").agg(pl.col("transmit_ns", "wait_ns", "unsplit_ns").sum())
    exposed, waiting, unsplit = per_step.select(pl.col("transmit_ns", "wait_ns", "unsplit_ns").median()).row(0)
    if not step_ns or (exposed + unsplit) / step_ns < limits.exposed_ratio:
        return
    unit = unit_of(breakdown)
    evidence = {"transmit_ns": round(exposed), "wait_ns": round(waiting), "unsplit_ns": round(unsplit)}
    if unsplit > exposed:
        yield Finding(
            rule="exposed-communication",
            summary=(
                f"Communication that no computing covers takes {ms(exposed + unsplit)} {unit.of(step_ns)} "
                f"({(exposed + unsplit) / step_ns:.0%}), waiting for other ranks included."
            ),
            cause="How much of it is waiting cannot be told: the other members of the calls are not recorded.",
            action="Record all ranks of a group, or at least two, and analyse them together.",
            saving_ns=0,
            saving_ratio=0.0,
            evidence=evidence,
            per=unit.per,
        )
        return
    claimed = _claimed_ns(slow_links, slow_groups) * exposed_share(segments, arrival)
    saving = max(exposed - claimed, 0.0) * limits.hideable_ratio
    yield Finding(
        rule="exposed-communication",
        summary=(
            f"Transmission that no computing covers takes {ms(exposed)} {unit.of(step_ns)} ({exposed / step_ns:.0%})."
        ),
        cause="Collectives run when there is nothing left to compute beside them.",
        action=(
            "Start collectives earlier (gradient buckets, bucket size, parameter prefetch), accumulate "
            "gradients over micro-batches, send less (lower precision, compression), or use faster links."
        ),
        saving_ns=round(saving),
        saving_ratio=saving / step_ns,
        evidence=evidence,
        per=unit.per,
    )


def _claimed_ns(links: pl.DataFrame | None, groups: pl.DataFrame | None) -> float:
    """What the slowest link costs a step, or where no link is accused the slowest group."""
    if links is not None and not links.is_empty():
        return float(links["cost_ns"][0])
    if groups is None or groups.is_empty():
        return 0.0
    return float(groups.group_by("group").agg(pl.col("cost_ns").sum())["cost_ns"].max() or 0)  # type: ignore[arg-type]
