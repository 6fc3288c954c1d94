"""The host's processors are busy, so everything that runs there is late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import PYTORCH, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a host counts as busy."""

    busy_ratio: float = limit(0.80, "of all processors busy, mean", "MindSpore Insight")


MESSAGES = {
    "busy": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} on a busy host: {busy_ratio:percent} of its CPU is in use[ on rank "
            "{worst_rank}].",
            "{ranks:ranks} 运行在繁忙的主机上：CPU 使用率 {busy_ratio:percent}[（rank {worst_rank}）]。",
        ),
        cause=Text(
            "The threads of the host wait for a processor, those that launch work and load data among them.[ The "
            "training process itself keeps {process_processors:number .1f} of {processors} processors busy.]",
            "主机上的线程要等待处理器，其中包括下发任务和加载数据的线程。"
            "[训练进程本身占用 {processors} 个处理器中的 {process_processors:number .1f} 个。]",
        ),
        action={
            (PYTORCH, None): Text(
                "Stop what else runs on the host. If the DataLoader's workers use the most, lower num_workers where "
                "they do little («`stepscope input`»), or make the transforms cheaper; bind processes to NUMA nodes.",
                "停掉主机上的其他作业。若 DataLoader 的工作进程占用最多，在它们作用不大时减小 num_workers"
                "（«`stepscope input`»），或减轻数据变换；把进程绑定到 NUMA 节点。",
            ),
            (None, None): Text(
                "Stop what else runs on the host. If the dataset pipeline uses the most, lower its workers where they "
                "do little («`stepscope input`»), or make its operators cheaper; bind processes to NUMA nodes.",
                "停掉主机上的其他作业。若数据集流水线占用最多，在其工作线程作用不大时减少它们"
                "（«`stepscope input`»），或减轻其算子；把进程绑定到 NUMA 节点。",
            ),
        },
    )
}


@rule(
    "cpu-busy",
    MESSAGES,
    dimension="schedule",
    computed=Text(
        "Averages the share of time in which the processors of a host are not idle over its samples, and "
        "reports it beyond `busy_ratio`, unless training itself computes on the CPU. What waiting for a "
        "processor costs was not recorded, so no saving is claimed.",
        "对主机各次采样求处理器非空闲时间的平均占比，超过 `busy_ratio` 时报告；若训练本身在 CPU 上计算则"
        "不报告。等待处理器造成的代价没有记录，因此不计节省。",
    ),
    shows=("cpu_summary",),
)
def cpu_busy(cpu_summary: pl.DataFrame, ranks: pl.LazyFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report hosts whose processors are idle for less than 1 - `busy_ratio` of the time.

    If training itself computes on the CPU, busy processors are expected and not reported.
    """
    on_cpu = ranks.filter(pl.col("device_kind") == "cpu").select("rank").collect()["rank"]
    mine = cpu_summary.filter(pl.col("scope") == "process").select("rank", mine="mean_busy_processors")
    busy = (
        cpu_summary.filter((pl.col("scope") == "host") & ~pl.col("rank").is_in(on_cpu.implode()))
        .with_columns(busy=1 - pl.col("mean_idle_ratio"))
        .filter(pl.col("busy") > limits.busy_ratio)
        .join(mine, on="rank", how="left")
        .sort("busy", descending=True)
    )
    if busy.is_empty():
        return
    worst = busy.row(0, named=True)
    yield Finding(
        rule="cpu-busy",
        message="busy",
        parameters={
            "busy_ratio": worst["busy"],
            "process_processors": worst["mine"],
            "processors": worst["processors"] or None,
        },
        evidence={
            "busy_ratio": worst["busy"],
            **{name: worst[f"mean_{name}"] for name in ("user_ratio", "system_ratio", "io_ratio")},
            "processors": worst["processors"],
            "process_processors": worst["mine"],
        },
        confidence="possible",  # that processors are busy is certain, but not that training waits for them
    ).on(busy["rank"])
