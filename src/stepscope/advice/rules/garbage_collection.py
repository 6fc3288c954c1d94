"""Python's garbage collection stops training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding, per_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.occurrence import Limits as OccurrenceLimits
from stepscope.advice.occurrence import occurrence, occurrence_facts
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import BASIS, code_of, span_of, stopped, worst_call
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(OccurrenceLimits):
    """When garbage collection is worth a finding."""

    idle_ratio: float = limit(0.02, "of the recording, idle", "chosen by us: less is not worth a finding")
    long_ns: int = limit(1_000_000, "ns, of the longest collection", "the Ascend advisor's limit")


MESSAGES = {
    "stops": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one is|are} stopped by Python's garbage collection: [{idle_ns:ms} of {step_ns:whole}]"
            "[{lost_ns:ms} of {recorded_ns:ms}] ({ratio:percent})[ on rank {worst_rank}][, most of it {when:when}].",
            "{ranks:ranks} 因 Python 垃圾回收而停顿：[{step_ns:whole} 中有 {idle_ns:ms}]"
            "[{recorded_ns:ms} 中有 {lost_ns:ms}]（{ratio:percent}）[（rank {worst_rank}）]"
            "[，大部分{when:when}出现]。",
        ),
        cause=Text(
            "While Python collects garbage, the training thread does nothing else: "
            "{calls:count collection|collections} in {steps:windows}, the longest of {longest_ns:ms}.",
            "Python 回收垃圾时，训练线程不做其他事情：{steps:windows}中有 {calls} 次回收，最长 {longest_ns:ms}。",
        ),
        action=Text(
            "Call gc.freeze() after warm-up, so that collections skip the objects that stay, and raise "
            "gc.set_threshold(). Or call gc.disable() and let all ranks call gc.collect() in the same step, every few "
            "hundred steps, so that they do not wait for one another. If the script or a library calls gc.collect() in "
            "the training loop already, call it less often.",
            "在预热后调用 gc.freeze()，让回收跳过长期存在的对象，并调高 gc.set_threshold()。或调用 gc.disable()，"
            "并让所有 rank 每隔几百步在同一步调用 gc.collect()，避免相互等待。若脚本或库已在训练循环中调用 "
            "gc.collect()，请降低频率。",
        ),
        basis=BASIS,
    )
}


@rule(
    "garbage-collection",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "garbage_collection", yields=("garbage_collection",)),
    dimension="schedule",
    computed=Text(
        "The recorded garbage collections of each rank and step but the first, and the device's idle time during them. "
        "The saving is that idle time on the rank that loses most in each step, at most what a replay of the job "
        "without it saves.",
        "统计每个 rank 除首步外各步中记录到的垃圾回收，以及其间设备的空闲时间。节省为每步中损失最多的 rank 的空闲时间，"
        "且不超过去掉它后重放作业所得的节省。",
    ),
    shows=("garbage_collections",),
    explains=("slow-rank:garbage_collection", "long-step:garbage_collection"),
)
def garbage_collection(
    garbage_collections: pl.DataFrame, lost_time: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = Limits()
) -> Iterator[Finding]:
    """Report garbage collections of Python during which the device is idle."""
    long = garbage_collections.filter(pl.col("longest_ns").max().over("rank") >= limits.long_ns)
    lost = lost_time.filter(
        (pl.col("cause") == "garbage_collection")
        & (pl.col("lost_ratio") >= limits.idle_ratio)
        & pl.col("rank").is_in(long["rank"].implode())
    ).sort("lost_ratio", "rank", descending=[True, False])
    if lost.is_empty():
        return
    ranks, row = lost["rank"].to_list(), lost.row(0, named=True)
    worst, when = worst_call(long, ranks), occurrence(row, limits)
    together = stopped(long, breakdown, pl.col("rank").is_in(ranks))
    # ranks that collect in different steps hold the others up each time
    mean_ns = max(row["mean_ns"], 0 if together is None or len(ranks) == 1 else together.mean_ns)
    step_ns = row["recorded_ns"] / row["steps"]
    yield Finding(
        rule="garbage-collection",
        message="stops",
        parameters={
            "idle_ns": None if when else row["mean_ns"],
            "step_ns": None if when else step_ns,
            "lost_ns": row["lost_ns"] if when else None,
            "recorded_ns": row["recorded_ns"] if when else None,
            "ratio": row["lost_ratio"],
            "when": when,
            "calls": int(long.filter(pl.col("rank") == row["rank"])["calls"].sum()),
            "steps": max(breakdown.filter(pl.col("rank") == row["rank"]).height, row["steps"]),
            "longest_ns": worst["longest_ns"],
        },
        saving_ns=round(mean_ns),
        saving_ratio=min(mean_ns / step_ns, 1.0),
        saving_low_ns=0,
        per=per_of(breakdown),
        evidence={"longest_ns": worst["longest_ns"], **occurrence_facts(row)},
        confidence="certain",
        code=code_of(long, ranks),
        span_ns=span_of(worst),
        span_rank=worst["rank"],
    ).on(ranks)
