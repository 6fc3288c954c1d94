"""Communication that is not hidden by computing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding, per_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.slow_link import exposed_share
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed transmission is worth a finding."""

    exposed_ratio: float = limit(0.10, "of the step", "the PyTorch profiler's own advice")
    hideable_ratio: float = limit(0.5, "of the exposed transmission", "the first and last calls of a step stay exposed")


MESSAGES = {
    "exposed": Message(
        summary=Text(
            "Transmission that no computing covers takes {exposed_ns:ms} of {step_ns:whole} ({ratio:percent}).",
            "没有被计算掩盖的传输：{step_ns:whole} 中有 {exposed_ns:ms}（{ratio:percent}）。",
        ),
        cause=Text(
            "Collectives run when nothing is left to compute at the same time.",
            "集合通信运行时，已没有可同时进行的计算。",
        ),
        action=Text(
            "Start collectives earlier (gradient buckets, bucket size, parameter prefetch), accumulate gradients over "
            "micro-batches, send less (lower precision, compression), or use faster links.",
            "更早开始集合通信（梯度分桶、桶大小、参数预取），在微批次上累积梯度，减少传输量（降低精度、压缩），"
            "或使用更快的链路。",
        ),
        basis=Text(
            "from none of the exposed transmission hidden to all of it", "下限为暴露的传输完全无法掩盖，上限为全部掩盖"
        ),
    ),
    "unsplit": Message(
        summary=Text(
            "Communication that no computing covers takes {exposed_ns:ms} of {step_ns:whole} ({ratio:percent}), "
            "waiting for other ranks included.",
            "没有被计算掩盖的通信（包括等待其他 rank）：{step_ns:whole} 中有 {exposed_ns:ms}（{ratio:percent}）。",
        ),
        cause=Text(
            "How much of it is waiting is unknown: not all members of the calls are recorded.",
            "其中多少是等待未知：这些调用的成员没有全部被记录。",
        ),
        action=Text(
            "Record all ranks of a group and analyse them together.",
            "记录一个通信组的全部 rank，并一起分析。",
        ),
    ),
}


@rule("exposed-communication", MESSAGES, whole_job=True)
def exposed_communication(
    segments: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_links: pl.DataFrame | None,
    slow_groups: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report transmission that is not hidden by computing, without the time that ranks wait for each other.

    The saving is the part of the median rank's exposed transmission that better overlap usually hides, less the saving
    of fixing the slowest link or group (`slow-link`, `slow-group`). If it is unknown how much of the communication is
    waiting, no saving is claimed.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    per_step = segments.group_by("rank", "step").agg(pl.col("transmit_ns", "wait_ns", "unsplit_ns").sum())
    both = pl.col("transmit_ns") + pl.col("unsplit_ns")  # summed before the median: calls of some steps may be split
    medians = per_step.with_columns(both_ns=both).select(
        pl.col("transmit_ns", "wait_ns", "unsplit_ns", "both_ns").median()
    )
    exposed, waiting, unsplit, either = medians.row(0)
    if not step_ns or either / step_ns < limits.exposed_ratio:
        return
    per, split = per_of(breakdown), unsplit <= exposed and exposed / step_ns >= limits.exposed_ratio
    shown = exposed if split else either
    parameters = {"exposed_ns": shown, "step_ns": step_ns, "ratio": shown / step_ns}
    evidence = {"transmit_ns": round(exposed), "wait_ns": round(waiting), "unsplit_ns": round(unsplit)}
    if not split:
        yield Finding("exposed-communication", "unsplit", parameters, per=per, evidence=evidence)
        return
    claimed = _claimed_ns(slow_links, slow_groups) * exposed_share(segments, arrival)
    saving = max(exposed - claimed, 0.0) * limits.hideable_ratio
    yield Finding(
        rule="exposed-communication",
        message="exposed",
        parameters=parameters,
        saving_ns=round(saving),
        saving_ratio=saving / step_ns,
        saving_low_ns=0,
        saving_high_ns=max(round(exposed), round(saving)),
        per=per,
        evidence=evidence,
    )


def _claimed_ns(links: pl.DataFrame | None, groups: pl.DataFrame | None) -> float:
    """The cost of the slowest link per step, or of the slowest group if no link is reported."""
    if links is not None and not links.is_empty():
        return float(links["cost_ns"][0])
    if groups is None or groups.is_empty():
        return 0.0
    return float(groups.group_by("group").agg(pl.col("cost_ns").sum())["cost_ns"].max() or 0)  # type: ignore[arg-type]
