"""Training stands still while checkpoints are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding, per_of
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.occurrence import Limits as OccurrenceLimits
from stepscope.advice.occurrence import occurrence, occurrence_facts
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(OccurrenceLimits):
    """When checkpoints are worth a finding."""

    checkpoint_ratio: float = limit(0.05, "of the recording, on the rank that waits longest", "chosen by us")


MESSAGES = {
    "stops": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one stops|stop} for checkpoints: {lost_ns:ms} of {recorded_ns:ms} ({ratio:percent})"
            "[ on rank {worst_rank}][, {when:when}].",
            "{ranks:ranks} 因保存检查点而停顿：{recorded_ns:ms} 中有 {lost_ns:ms}（{ratio:percent}）"
            "[（rank {worst_rank}）][，{when:when}出现]。",
        ),
        cause=Text(
            "The training loop writes the checkpoint itself and goes on when it is on disk.",
            "训练循环自己写检查点，写到磁盘后才继续。",
        ),
        action=framed(
            Text("Save less often", "降低保存频率"),
            {
                (PYTORCH, None): Text(
                    ", or without stopping for it (torch.distributed.checkpoint.async_save, or copy the state to host "
                    "memory and write it in a thread)",
                    "，或异步保存（torch.distributed.checkpoint.async_save，或把状态拷贝到主机内存后由线程写出）",
                ),
                (MINDSPORE, None): Text(
                    " (CheckpointConfig(save_checkpoint_steps=...)), without stopping for it (async_save=True)",
                    "（CheckpointConfig(save_checkpoint_steps=...)）、异步保存（async_save=True）",
                ),
                (None, None): Text(", or without stopping for it", "，或异步保存"),
            },
            Text(", and to local storage first.", "，并先写到本地存储。"),
        ),
        basis=Text(
            "at most all the time of the checkpoints, since their state has to be copied in any case",
            "上限为检查点的全部时间，因为状态无论如何都要拷贝",
        ),
    )
}


@rule(
    "checkpoint",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "checkpoint", yields=("checkpoint",)),
    dimension="overall",
    computed=Text(
        "Sums the idle time of each rank that the recording marks as saving a checkpoint, from "
        "`checkpoint_ratio` of the recording on. The saving is that of the rank that waits longest, "
        "divided by the number of steps; its lower bound is nothing, since state has to be copied in any "
        "case.",
        "对各 rank 累加记录中标为保存检查点的空闲时间，占记录的比例达到 `checkpoint_ratio` 时报告。节省取"
        "等待最久的 rank 的总和除以步数；由于状态总要复制，下限为零。",
    ),
    shows=("lost_time",),
    explains=("slow-rank:checkpoint", "long-step:checkpoint"),
)
def checkpoint(lost_time: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report checkpoints that stop training for long.

    The others wait for the rank that saves, so the rank that waits longest counts. The saving is the cost of all its
    checkpoints averaged over the steps: an upper bound, since state has to be copied in any case.
    """
    slow = lost_time.filter((pl.col("cause") == "checkpoint") & (pl.col("lost_ratio") >= limits.checkpoint_ratio)).sort(
        "lost_ratio", "rank", descending=[True, False]
    )
    if slow.is_empty():
        return
    worst = slow.row(0, named=True)
    yield Finding(
        rule="checkpoint",
        message="stops",
        parameters={
            "lost_ns": worst["lost_ns"],
            "recorded_ns": worst["recorded_ns"],
            "ratio": worst["lost_ratio"],
            "when": occurrence(worst, limits),
        },
        saving_ns=worst["mean_ns"],
        saving_ratio=worst["lost_ratio"],
        saving_low_ns=0,
        per=per_of(breakdown),
        evidence=occurrence_facts(worst),
        where={"steps": worst["stalled_steps"]} if worst["stalled_steps"] else {},
        confidence="certain",
    ).on(slow["rank"])
