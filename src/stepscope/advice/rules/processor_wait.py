"""The training thread waits for a processor, as other threads of the host run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, PYTORCH, Finding, per_of, place, platform_of
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.registry import rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waiting for processors is worth a finding."""

    wait_ratio: float = limit(0.05, "of the steps, median rank", "chosen by us: less is not worth a finding")
    usual_ratio: float = limit(
        0.02, "of the median step, for more than a remark", "chosen by us: single waits are chance"
    )


_SUMMARY = Text(
    "[{ranks:Ranks} {ranks:one waits|wait}][{everyone:one Training waits|}] for processors: in {delay_ns:ms} of "
    "{recorded_ns:ms} ({ratio:percent}), the training thread was ready to run but none was free"
    "[, in the longest {per:noun} for {longest_ns:ms}].",
    "[{ranks:ranks} ][{everyone:one 训练|}]在等待处理器：{recorded_ns:ms} 中有 {delay_ns:ms}（{ratio:percent}），"
    "训练线程可以运行但没有空闲的处理器[，最长的{per:noun}为 {longest_ns:ms}]。",
)
_WHO = Text(
    "[ The {processors} processors of the host were {busy:percent} busy, {mine:number .1f} of them with the training "
    "process and its workers.]",
    "[主机的 {processors} 个处理器有 {busy:percent} 的时间忙碌，其中训练进程及其工作进程占 {mine:number .1f} 个。]",
)
_OTHERS = Text(
    "Stop what else runs on the host, or give this job processors of its own (`taskset`, `numactl`, the limits of a "
    "container). ",
    "停掉主机上的其他作业，或为该作业分配专用的处理器（`taskset`、`numactl`、容器的限额）。",
)
_ACTION: Choices = framed(
    _OTHERS,
    {
        (PYTORCH, None): Text(
            "If it fills them itself, use fewer threads (OMP_NUM_THREADS, torch.set_num_threads) and workers of the "
            "DataLoader (num_workers) than there are processors, in all processes of the host together.",
            "若处理器被它自己占满，使主机上所有进程的线程（OMP_NUM_THREADS、torch.set_num_threads）与 DataLoader 工作"
            "进程（num_workers）总数少于处理器数。",
        ),
        (None, None): Text(
            "If it fills them itself, use fewer threads (OMP_NUM_THREADS) and workers of the dataset than there are "
            "processors, in all processes of the host together.",
            "若处理器被它自己占满，使主机上所有进程的线程（OMP_NUM_THREADS）与数据集工作线程总数少于处理器数。",
        ),
    },
)

MESSAGES = {
    "usual": Message(
        summary=_SUMMARY,
        cause=Text(
            "The system counts how long a thread waits in the queue of a processor while others run: more threads are "
            "ready than there are processors.",
            "系统统计线程在处理器队列中等待其他线程运行的时间：可运行的线程多于处理器。",
        )
        + _WHO,
        action=_ACTION,
        basis=Text("from nothing, if all others have to run as well", "若其他线程同样必须运行，则下限为零"),
    ),
    "single": Message(
        summary=_SUMMARY,
        cause=Text(
            "This happened in few {per:nouns}; in the median one it costs {median_ratio:percent}. Something else ran "
            "on the host for a moment.",
            "这只发生在少数{per:nouns}中，中位{per:noun}仅占 {median_ratio:percent}：主机上短暂运行了其他任务。",
        )
        + _WHO,
        action=Text(
            "Nothing in the script needs to change. If it recurs, find what runs then on the host.",
            "脚本无需改动。若反复出现，找出当时主机上运行了什么。",
        ),
    ),
}


@rule(
    "processor-wait",
    MESSAGES,
    dimension="schedule",
    computed=Text(
        "Sums how long the training thread was ready to run while the processors ran others, as Linux counts it for "
        "each step, and takes the median rank. Other rules leave this time out. It costs its mean per step, on a "
        "device only as far as that is idle; how much of it could be saved is unknown. If most steps wait little, it "
        "is a remark without a cost.",
        "累加训练线程可以运行但处理器在运行其他线程的时间（操作系统按线程统计，记录器按步记录），取中位 rank。"
        "其他规则不计这段时间。代价为其每步平均值，有设备时不超过设备空闲时间，其中可节省多少未知；"
        "若多数步几乎不等待，则仅作提示，不计代价。",
    ),
    shows=("processor_waits", "cpu_summary"),
)
def processor_wait(
    processor_waits: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    cpu_summary: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report jobs whose training threads wait long for processors, in most steps or in some."""
    sums = _sums(processor_waits)
    if sums.is_empty():
        return
    row = sums.row((sums.height - 1) // 2, named=True)
    if row["ratio"] < limits.wait_ratio:
        return
    found = sums.filter(pl.col("ratio") >= limits.wait_ratio)["rank"].sort().to_list()
    usual = row["median_ratio"] >= limits.usual_ratio
    cost = _cost(row, breakdown, is_cpu=platform_of(ranks).device == CPU) if usual else 0.0
    everyone = len(found) == sums.height
    yield Finding(
        rule="processor-wait",
        message="usual" if usual else "single",
        parameters={
            **{name: row[name] for name in ("delay_ns", "recorded_ns", "ratio")},
            **({} if usual else {"median_ratio": row["median_ratio"]}),
            "longest_ns": row["longest_ns"] if row["steps"] > 1 else None,
            "ranks": None if everyone else found,
            "everyone": 1 if everyone else None,
            **_busy(cpu_summary, row["rank"]),
        },
        saving_ns=round(cost),
        saving_ratio=cost * row["steps"] / row["recorded_ns"],
        saving_low_ns=0,
        per=per_of(breakdown, "step"),
        where=place(found),
        evidence={name: row[name] for name in ("delay_ns", "recorded_ns", "longest_ns", "steps")},
        most="high" if usual else "low",
        confidence="certain",
    )


def _sums(processor_waits: pl.DataFrame) -> pl.DataFrame:
    """The waits of each rank, the shortest share of its steps first."""
    delay, window = pl.col("run_delay_ns"), pl.col("window_ns")
    share = pl.when(window > 0).then(delay / window).otherwise(0.0)
    sums = processor_waits.group_by("rank").agg(
        delay_ns=delay.sum(),
        recorded_ns=window.sum(),
        longest_ns=delay.max(),
        steps=pl.len().cast(pl.Int64),
        median_ratio=share.median(),
    )
    known = sums.filter(pl.col("recorded_ns") > 0)
    return known.with_columns(ratio=pl.col("delay_ns") / pl.col("recorded_ns")).sort("ratio", "rank")


def _cost(row: dict[str, float], breakdown: pl.DataFrame | None, *, is_cpu: bool) -> float:
    """What waiting costs a step: on a device, no more than its idle time."""
    mean = row["delay_ns"] / row["steps"]
    if is_cpu:
        return mean
    free = None if breakdown is None else breakdown.filter(pl.col("rank") == row["rank"])["free_ns"].mean()
    return min(mean, float(free)) if isinstance(free, (int, float)) else 0.0


def _busy(cpu_summary: pl.DataFrame | None, rank: float) -> dict[str, float | None]:
    """How busy the processors of a rank's host were, and with how many of them its own processes."""
    unknown: dict[str, float | None] = dict.fromkeys(("processors", "busy", "mine"))
    if cpu_summary is None:
        return unknown
    own = cpu_summary.filter(pl.col("rank") == rank)
    host = own.filter(pl.col("scope") == "host").drop_nulls("mean_idle_ratio")
    mine = own.filter(pl.col("scope").is_in(["process", "worker"]))["mean_busy_processors"].drop_nulls()
    if host.is_empty() or mine.is_empty() or not host["processors"][0]:
        return unknown
    return {"processors": host["processors"][0], "busy": 1 - host["mean_idle_ratio"][0], "mine": float(mine.sum())}
