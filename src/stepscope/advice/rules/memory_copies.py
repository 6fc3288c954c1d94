"""Memory copies and fills that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed memory operations are worth a finding."""

    exposed_ratio: float = limit(0.05, "of the step, with the device only copying", "chosen by us")


MESSAGES = {
    "exposed": Message(
        summary=Text(
            "The device only copies memory for {exposed_ns:ms} of {step_ns:whole} ({ratio:percent}).",
            "设备只在拷贝内存：{step_ns:whole} 中有 {exposed_ns:ms}（{ratio:percent}）。",
        ),
        cause=Text(
            "Copies run on the stream that computes, or from pageable host memory, which blocks.",
            "拷贝在计算流上运行，或来自可分页的主机内存，因而阻塞。",
        ),
        action={
            (PYTORCH, None): Text(
                "Pin host memory (pin_memory=True), copy with non_blocking=True on a stream of its own, and fetch the "
                "next batch early.",
                "使用锁页内存（pin_memory=True），在单独的流上以 non_blocking=True 拷贝，并提前取下一批数据。",
            ),
            (MINDSPORE, None): Text(
                "Let the data queue send batches to the device ahead of the step (data sinking), and keep copies to "
                "the host (`.asnumpy()`, prints of tensors) out of the step.",
                "让数据队列提前把批次送到设备（数据下沉），并避免在训练步中向主机拷贝（`.asnumpy()`、打印张量）。",
            ),
            (None, None): Text(
                "Copy on a stream of its own, and fetch the next batch early.", "在单独的流上拷贝，并提前取下一批数据。"
            ),
        },
    )
}


@rule(
    "memory-copies",
    MESSAGES,
    claim=Claim(Turn.SEEN_IDLE, "memory"),
    dimension="memory",
    computed=Text(
        "Takes the time of the median step in which the device only copies or fills memory, hidden by "
        "neither computing nor communication. The saving is all of it, at most what a replay of the job "
        "without it saves.",
        "取中位步中设备只在复制或填充内存、既没有被计算也没有被通信掩盖的时间。节省为其全部，且不超过去掉"
        "它后重放任务所得。",
    ),
    shows=("breakdown", "copies"),
)
def memory_copies(
    breakdown: pl.DataFrame, ranks: pl.LazyFrame | None = None, limits: Limits = Limits()
) -> Iterator[Finding]:
    """Report memory operations hidden by neither computing nor communication (median rank and step)."""
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed = median(breakdown, pl.col("memory_not_overlapped_ns"))
    ratio = exposed / step_ns if step_ns else 0.0
    if ratio >= limits.exposed_ratio and platform_of(ranks).device != CPU:
        yield Finding(
            rule="memory-copies",
            message="exposed",
            parameters={"exposed_ns": exposed, "step_ns": step_ns, "ratio": ratio},
            saving_ns=round(exposed),
            saving_ratio=ratio,
            evidence={"memory_not_overlapped_ns": round(exposed), "window_ns": round(step_ns)},
            per=per_of(breakdown),
            confidence="certain",
        )
