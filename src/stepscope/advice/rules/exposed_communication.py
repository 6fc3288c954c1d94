"""Communication that is not hidden by computing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import item_ns
from stepscope.advice.rules.bandwidth_contention import contended_ns
from stepscope.analysis.communication.late_ranks import MOST, late_ranks, lateness
from stepscope.analysis.job.comparable import unrecorded
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.rank_lists import accused, listed_ranks
from stepscope.analysis.replay.call_savings import SLOW
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed transmission is worth a finding, and when it is slow."""

    exposed_ratio: float = limit(0.10, "of the step", "the PyTorch profiler's own advice")
    slowdown_factor: float = limit(
        1.25, "of the best transmission that recurs", "healthy calls of a kind agree within 10 %"
    )
    told_ratio: float = limit(0.05, "of the step, between median and mean", "chosen by us: less needs no words")
    excess_ratio: float = limit(0.01, "of the step", "less is not worth a look at the network")


_WAITING = Text(
    "[ Besides, ranks wait {wait_ns:ms} {per:each} for others in communication.][ Most of it is for {late:ranks}.]",
    "[此外，{per:each}各 rank 在通信中等待其他 rank {wait_ns:ms}。][其中主要等待 {late:ranks}。]",
)
_EARLIER = Text(
    "Start collectives earlier (gradient buckets, bucket size, parameter prefetch), accumulate gradients over "
    "micro-batches, send less (lower precision, compression), or use faster links.",
    "更早开始集合通信（梯度分桶、桶大小、参数预取），在微批次上累积梯度，减少传输量（降低精度、压缩），"
    "或使用更快的链路。",
)
_EXPOSED = Text(
    "Transmission that no computing covers takes {exposed_ns:ms} of {step_ns:whole} ({ratio:percent}"
    "[; in the mean {per:noun}, {mean_ratio:percent}])",
    "没有被计算掩盖的传输：{step_ns:whole} 中有 {exposed_ns:ms}"
    "（{ratio:percent}[；平均每{per:noun} {mean_ratio:percent}]）",
)
_UNSPLIT = Text(
    "Communication that no computing covers takes {exposed_ns:ms} of {step_ns:whole} ({ratio:percent}[; in the mean "
    "{per:noun}, {mean_ratio:percent}]), waiting for other ranks included.",
    "没有被计算掩盖的通信（包括等待其他 rank）：{step_ns:whole} 中有 {exposed_ns:ms}"
    "（{ratio:percent}[；平均每{per:noun} {mean_ratio:percent}]）。",
)

MESSAGES = {
    "exposed": Message(
        summary=_EXPOSED + Text(".", "。"),
        cause=Text(
            "Collectives run when nothing is left to compute at the same time, as fast as ever in the recording.",
            "集合通信运行时，已没有可同时进行的计算；其速度与记录中的最好水平相当。",
        )
        + _WAITING,
        action=_EARLIER,
        basis=Text(
            "nothing is claimed, as it is unknown whether computing could cover it: at most all of it",
            "未知计算能否掩盖，因此不计节省：至多为全部",
        ),
    ),
    "slow": Message(
        summary=_EXPOSED
        + Text(
            ", {excess_ns:ms} more than if all calls were as fast as the best of their kind.",
            "，比所有调用都达到同类最好水平时多 {excess_ns:ms}。",
        ),
        cause=Text(
            "The same transfers are often faster in this recording: the network is shared or its paths collide.",
            "同样的传输在本次记录中常常更快：网络被共用，或路径发生冲突。",
        )
        + _WAITING,
        action=Text(
            "Look at when they are slow (`stepscope analyze --table arrival`): with computing at the same time, with "
            "other groups, or in single steps. Check congestion counters of the network and other jobs on it.",
            "查看它们何时变慢（`stepscope analyze --table arrival`）："
            "与计算同时、与其他通信组同时，还是只在个别步。检查网络的拥塞计数以及其他作业。",
        ),
        basis=Text(
            "from nothing to all of the exposed transmission; claimed is what the best of the recording would save",
            "下限为零，上限为全部暴露的传输；所计为达到记录中最好水平的节省",
        ),
    ),
    "processors": Message(
        summary=_EXPOSED + Text(".", "。"),
        cause=Text(
            "All ranks are on one host, so its processors move the data: how fast depends on what else they do.",
            "所有 rank 在同一主机上，由处理器搬运数据：快慢取决于处理器同时还在做什么。",
        )
        + _WAITING,
        action=Text(
            "Leave processors to the threads that move data (fewer ranks, OMP_NUM_THREADS), start collectives earlier "
            "(gradient buckets), or send less (lower precision, accumulating gradients over micro-batches).",
            "为搬运数据的线程留出处理器（减少 rank、OMP_NUM_THREADS），更早开始集合通信（梯度分桶），"
            "或减少传输量（降低精度、在微批次上累积梯度）。",
        ),
        basis=Text(
            "nothing is claimed, as it is unknown how fast it could be while ranks compute: at most all of it",
            "未知在各 rank 计算时传输能有多快，因此不计节省：至多为全部",
        ),
    ),
    "unsplit": Message(
        summary=_UNSPLIT,
        cause=Text(
            "How much of it is waiting is unknown: not all members of the calls are recorded.",
            "其中多少是等待未知：这些调用的成员没有全部被记录。",
        ),
        action=Text(
            "Record all ranks of a group and analyse them together.",
            "记录一个通信组的全部 rank，并一起分析。",
        ),
    ),
    "unmatched": Message(
        summary=_UNSPLIT,
        cause=Text(
            "How much of it is waiting is unknown: all ranks were recorded, but not which of their calls belong "
            "together (the group of a call, or the other side of a send or receive).",
            "其中多少是等待未知：全部 rank 都有记录，但没有记录哪些调用属于一起（通信组，或点对点收发的另一方）。",
        ),
        action={
            (PYTORCH, CPU): Text(
                "Record shapes as well (record_shapes=True), by which sends and receives name their other side; "
                "collectives of gloo name no group where a job has several.",
                "同时记录形状（record_shapes=True），点对点收发会因此带上另一方；"
                "有多个通信组时，gloo 的集合通信不带组名。",
            ),
            (None, None): Text(
                "Record at a level at which calls name their group and their other side.",
                "使用会记录通信组和收发双方的采集级别。",
            ),
        },
    ),
}


@rule(
    "exposed-communication",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.STEP_START, "communication"),  # before savings of settings, which yield to it
    dimension="communication",
    computed=Text(
        "Takes the median step's transmission that no computing covers, without the time in which ranks "
        "wait for each other, from `exposed_ratio` of the step on. The saving is only what calls take "
        "longer than the best of their kind in the recording, as far as computing awaits it, less what "
        "slow links and groups claim and what calls beside matrix products take longer; and at most what a replay "
        "of the job without it saves.",
        "取中位步中没有被计算掩盖的传输（不含 rank 之间的相互等待），达到一步的 `exposed_ratio` 时报告。"
        "节省只计各次调用比记录中同类最好水平多出、且计算要等待的部分，并扣除慢链路、慢通信组已计入的部分以及同时进行矩阵乘所多用的时间；"
        "且不超过去掉它后重放作业所得。",
    ),
    shows=("transmission", "waits"),
)
def exposed_communication(
    segments: pl.DataFrame,
    breakdown: pl.DataFrame,
    transmission: pl.DataFrame | None,
    waits: pl.DataFrame | None,
    slow_links: pl.DataFrame | None,
    slow_groups: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    pipeline_places: pl.DataFrame | None = None,
    slow_ranks: pl.DataFrame | None = None,
    contended_calls: pl.DataFrame | None = None,
    call_savings: pl.DataFrame | None = None,
    arrival: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report transmission that is not hidden by computing, without the time that ranks wait for each other.

    Claimed is only what calls take longer than the best of their kind in the recording, as far as computing awaits it,
    less what `slow-link` and `slow-group` claim. Whether computing could hide the rest is unknown. So is everything if
    it is unknown how much of the communication is waiting, or if the processors of one host move the data while they
    compute.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    steps = breakdown.select("rank", "step")
    in_steps = segments.join(steps, on=["rank", "step"], how="semi", nulls_equal=True)  # others have no length
    per_step = in_steps.group_by("rank", "step").agg(pl.col("transmit_ns", "wait_ns", "unsplit_ns").sum())
    both = pl.col("transmit_ns") + pl.col("unsplit_ns")  # summed before the median: calls of some steps may be split
    medians = per_step.with_columns(both_ns=both).select(
        pl.col("transmit_ns", "wait_ns", "unsplit_ns", "both_ns").median()
    )
    exposed, waiting, unsplit, either = medians.row(0)
    if not step_ns or either is None or either / step_ns < limits.exposed_ratio:
        return
    per, split = per_of(breakdown), unsplit <= exposed and exposed / step_ns >= limits.exposed_ratio
    shown = exposed if split else either
    mean = _mean(per_step, pl.col("transmit_ns") if split else both) / _mean(breakdown, pl.col("window_ns"))
    ratio = shown / step_ns
    told = mean if abs(mean - ratio) >= limits.told_ratio else None
    parameters = {"exposed_ns": shown, "step_ns": step_ns, "ratio": ratio, "mean_ratio": told}
    evidence = {"transmit_ns": round(exposed), "wait_ns": round(waiting), "unsplit_ns": round(unsplit)}
    if not split:
        message = "unmatched" if _are_all_here(ranks, arrival) else "unsplit"
        yield Finding("exposed-communication", message, parameters, per=per, evidence=evidence, confidence="possible")
        return
    late = [] if waits is None else _late(waits, pipeline_places, slow_ranks, breakdown["rank"].n_unique())
    has_waited = waiting >= 1
    parameters |= {"wait_ns": waiting if has_waited else None, "late": late if has_waited and late else None}
    excess = _excess_ns(transmission, limits)
    claimed = _claimed_ns(slow_links, slow_groups) + contended_ns(contended_calls)
    excess = min(max(excess - claimed, 0.0), exposed)
    on_one_host = _on_one_host(ranks)
    limit_ns = item_ns(SLOW, call_savings)
    excess = excess if limit_ns is None else min(excess, limit_ns)
    saving = round(excess) if excess >= limits.excess_ratio * step_ns and not on_one_host else 0
    yield Finding(
        rule="exposed-communication",
        message="processors" if on_one_host else "slow" if saving else "exposed",
        parameters={**parameters, "excess_ns": saving} if saving else parameters,
        saving_ns=saving,
        saving_ratio=saving / step_ns,
        saving_low_ns=0,
        saving_high_ns=max(round(exposed), saving),
        replayed=limit_ns is not None,
        per=per,
        evidence={**evidence, "late_ranks": late},
        most="medium",  # a noisy network has better calls, too
        confidence="possible" if saving else "likely",
    )


def _mean(rows: pl.DataFrame, what: pl.Expr) -> float:
    return float(rows.select(what.mean()).item() or 0)


def _are_all_here(ranks: pl.LazyFrame | None, arrival: pl.DataFrame | None) -> bool:
    """Whether all ranks of a job of several are known to be recorded."""
    if ranks is None:
        return False
    world_size, here = ranks.select(pl.col("world_size").max(), pl.col("rank").n_unique()).collect().row(0)
    return here > 1 and world_size == here and not unrecorded(ranks, arrival)


def _late(waits: pl.DataFrame, places: pl.DataFrame | None, slow: pl.DataFrame | None, ranks: int) -> list[int]:
    """For whom most of the waiting is; nobody if most of it is what the schedule of a pipeline asks for."""
    known = lateness(waits, places, accused(slow))
    of_all = int(known["mean_ns"].sum()) >= MOST * int(waits["mean_ns"].sum())
    return late_ranks(known, ranks) if of_all else []


def _on_one_host(ranks: pl.LazyFrame | None) -> bool:
    """Whether all ranks compute on the processors of one host."""
    if ranks is None or platform_of(ranks).device != CPU:
        return False
    hosts = ranks.select(pl.col("host").unique()).collect()["host"]
    return hosts.len() == 1 and hosts[0] is not None


def _excess_ns(transmission: pl.DataFrame | None, limits: Limits) -> float:
    """What slow calls take longer than the best of their kind in a step, and computing awaits, on the worst rank."""
    if transmission is None:
        return 0.0
    slow = transmission.filter(pl.col("transmit_ns") >= limits.slowdown_factor * pl.col("best_ns"))
    of_ranks = slow.select("exposed_ns", rank=listed_ranks()).explode("rank")
    return float(of_ranks.group_by("rank").agg(pl.col("exposed_ns").sum())["exposed_ns"].max() or 0)  # type: ignore[arg-type]


def _claimed_ns(links: pl.DataFrame | None, groups: pl.DataFrame | None) -> float:
    """What slow links take longer per step, or the slowest group if no link is reported: even where a rank that is as
    late hides it, other calls do not."""
    if links is not None and not links.is_empty():
        return float(links.select(pl.max_horizontal("cost_ns", "exposed_ns").sum()).item())
    if groups is None or groups.is_empty():
        return 0.0
    return float(groups.group_by("group").agg(pl.col("cost_ns").sum())["cost_ns"].max() or 0)  # type: ignore[arg-type]
