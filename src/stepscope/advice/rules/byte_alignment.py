"""Transfers inside of a host whose sizes are no multiple of 512 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding, per_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import rule
from stepscope.analysis.methods.names import unnumbered
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When unaligned transfers are worth a finding."""

    share_ratio: float = limit(0.2, "of the time of transfers inside of hosts", "the Ascend advisor's lowest priority")
    saving_ratio: float = limit(0.01, "of the step", "chosen by us: below it nothing is gained")


_SUMMARY = Text(
    "{unaligned} of {tasks:count transfer|transfers} inside of hosts ({share_ratio:percent} of their time) have a size "
    "that is no multiple of 512 bytes",
    "主机内 {tasks} 次传输中有 {unaligned} 次（占其时间的 {share_ratio:percent}）的大小不是 512 字节的整数倍",
)
_ACTION: Choices = {
    (PYTORCH, None): Text(
        "Pad what is communicated to multiples of 512 bytes: fused gradient and parameter buffers, buckets, and the "
        "parts that each rank gets of them.",
        "将通信数据补齐到 512 字节的整数倍：融合的梯度和参数缓冲区、分桶，以及各 rank 分得的部分。",
    ),
    (MINDSPORE, None): Text(
        "Pad what is communicated to multiples of 512 bytes: fused gradients and parameters, and the parts that each "
        "rank gets of them.",
        "将通信数据补齐到 512 字节的整数倍：融合的梯度和参数，以及各 rank 分得的部分。",
    ),
    (None, None): Text(
        "Pad what is communicated to multiples of 512 bytes, also the part that each rank gets.",
        "将通信数据补齐到 512 字节的整数倍，包括各 rank 分得的部分。",
    ),
}

MESSAGES = {
    "slow": Message(
        summary=_SUMMARY
        + Text(
            " and reach {rate:giga} GB/s, against {aligned:giga} GB/s of aligned ones of like size.",
            "，速率为 {rate:giga} GB/s，而大小相近的对齐传输为 {aligned:giga} GB/s。",
        ),
        cause=Text("SDMA moves multiples of 512 bytes best.", "SDMA 传输 512 字节的整数倍时效率最高。"),
        action=_ACTION,
    ),
    "unknown": Message(
        summary=_SUMMARY + Text(".", "。"),
        cause=Text(
            "SDMA moves multiples of 512 bytes best. Whether these are slower is unknown, as too few transfers of like "
            "size are aligned: they reach {rate:giga} GB/s.",
            "SDMA 传输 512 字节的整数倍时效率最高。大小相近的对齐传输太少，无法判断它们是否更慢：其速率为 "
            "{rate:giga} GB/s。",
        ),
        action=_ACTION,
    ),
}


@rule(
    "byte-alignment",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "The share of the time of SDMA tasks (more than 512 bytes, not on the chip) whose size is no multiple of 512 "
        "bytes. The saving is what they take longer than aligned ones of like size, as far as their calls are not "
        "covered by computing, on the median rank.",
        "大小不是 512 字节整数倍的 SDMA 任务（大于 512 字节，非片内）的时间占比。"
        "节省为其比大小相近的对齐任务多用、且所属通信未被计算掩盖的时间（中位 rank）。",
    ),
    shows=("unaligned_transfers",),
)
def byte_alignment(
    unaligned_transfers: pl.DataFrame,
    breakdown: pl.DataFrame,
    exposed_calls: pl.DataFrame | None = None,
    arrival: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report transfers of unaligned sizes; as low, unless aligned ones are measured to be faster."""
    rows, step_ns = unaligned_transfers, median(breakdown, pl.col("window_ns"))
    total, off = int(rows["total_ns"].sum()), int(rows["unaligned_ns"].sum())
    if not off or not step_ns:
        return
    saving = _saving(rows, breakdown, exposed_calls, arrival)
    is_slow = saving / step_ns >= limits.saving_ratio
    compared = rows.filter(pl.col("excess_ns").is_not_null() & (pl.col("unaligned") > 0))
    unknown = off - int(compared["unaligned_ns"].sum())
    if not is_slow and unknown < limits.share_ratio * total:
        return  # few, or measured to be about as fast as aligned ones
    measured = compared if is_slow else rows.filter(pl.col("unaligned") > 0)
    sizes, spent_ns = int(measured["unaligned_bytes"].sum()), int(measured["unaligned_ns"].sum())
    ideal_ns = spent_ns - int(measured["excess_ns"].sum() or 0)
    worst = rows.group_by("rank").agg(pl.col("unaligned_ns").sum()).filter(pl.col("unaligned_ns") > 0)
    yield Finding(
        rule="byte-alignment",
        message="slow" if is_slow else "unknown",
        parameters={
            "unaligned": int(rows["unaligned"].sum()),
            "tasks": int(rows["tasks"].sum()),
            "share_ratio": off / total,
            "rate": sizes / max(spent_ns, 1) * 1e9,
            **({"aligned": sizes / max(ideal_ns, 1) * 1e9} if is_slow else {}),
        },
        saving_ns=round(saving) if is_slow else 0,
        saving_ratio=saving / step_ns if is_slow else 0.0,
        saving_low_ns=0,
        per=per_of(breakdown),
        where={"ranks": worst["rank"].sort().to_list()},
        evidence={"unaligned_ns": off, "total_ns": total, "excess_ns": compared["excess_ns"].sum()},
        confidence="likely" if is_slow else "possible",
        most="high" if is_slow else "low",
    )


def _saving(
    rows: pl.DataFrame, breakdown: pl.DataFrame, exposed: pl.DataFrame | None, arrival: pl.DataFrame | None
) -> float:
    """What unaligned tasks take longer per step, as the same share of the uncovered transmission of their calls."""
    if exposed is None or arrival is None:
        return 0.0
    kind = ["rank", "call"]
    names = arrival.select("rank", "collective", call=unnumbered())
    bare = exposed.join(names, on=["rank", "collective"]).group_by(kind).agg(pl.col("transmit_ns").sum())
    slower = rows.group_by(kind).agg(pl.col("excess_ns").sum(), pl.col("total_ns").sum()).join(bare, on=kind)
    share = pl.col("excess_ns") / pl.col("total_ns").clip(1)
    lost = slower.group_by("rank").agg(lost=(share * pl.col("transmit_ns")).sum())
    steps = breakdown.group_by("rank").agg(steps=pl.len())
    every = steps.join(lost, on="rank", how="left").select(pl.col("lost").fill_null(0) / pl.col("steps"))
    return float(every.to_series().median() or 0)  # type: ignore[arg-type]
