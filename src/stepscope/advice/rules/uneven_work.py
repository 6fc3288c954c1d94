"""Pipeline stages, replicas or micro-batches are uneven, so that ranks wait for one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, Per, per_of, place, widened
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.idle_gaps import short_name
from stepscope.advice.rules.slow_rank_reasons import parameters_of
from stepscope.analysis.rank_lists import accused, listed
from stepscope.limits import limit

_ERROR = Text(
    "[; the replay is {error_ratio:percent} off the recording, so this is uncertain]",
    "[；重放与记录相差 {error_ratio:percent}，因此不确定]",
)
_BASIS = (
    Text(
        "from the lower to the upper quartile of what a replay of the job without this saves",
        "不含此项的作业重放所节省时间的下四分位到上四分位",
    )
    + _ERROR
)
_STAGE = Text(
    "Stage imbalance: pipeline stage {unit} computes {factor:number .2f}x as long as the mean of the other stages.",
    "流水线阶段不均衡：阶段 {unit} 的计算时间是其他阶段平均值的 {factor:number .2f} 倍。",
)
_LAST = Text(
    "[ Stage {last} is the last one, which usually computes the output layer and the loss as well.]",
    "[阶段 {last} 是最后一个阶段，通常还要计算输出层和损失。]",
)
_MACHINE = Text("clock, temperature and other processes of its machine", "其机器的频率、温度和其他进程")


def _alone(summary: Text) -> Message:
    """The message about a stage with one recorded rank."""
    return Message(
        summary=summary,
        cause=Text(
            "Of this stage, only {ranks:ranks} {ranks:one was|were} recorded, so it is unknown whether its layers are "
            "more work or its machine is slow.",
            "该阶段只记录了 {ranks:ranks}，因此无法确定是层的计算量更大还是机器慢。",
        )
        + _LAST,
        action=Text(
            "Compare its layers with those of the other stages, and move some. If they are alike, check ",
            "把它的层与其他阶段对比，并移走一部分。若层相同，检查",
        )
        + _MACHINE
        + Text(".", "。"),
        basis=Text(
            "what a replay with even stages saves, up to what it saves if the machine is at fault and mended",
            "阶段均衡的重放所节省的时间；若为机器故障且已修复，则至多为上限",
        )
        + _ERROR,
    )


_EXTRA = (
    Text(
        "[, most of it in {names:list}][, most of it in more calls of {more:list}]"
        "[, most of it in larger shapes of {larger:list}].",
        "[，主要是 {names:list}][，主要是更多次调用 {more:list}][，主要是更大形状的 {larger:list}]。",
    ),
    Text(
        "Others do not[ run {names:list}][ run {more:list} as often][ run {larger:list} on such "
        "shapes], and wait: they compute for {others_ns:ms} "
        "{per:each}, against {computing_ns:ms}. This is more work, not a slow machine.",
        "其他 rank 不做[{names:list}][这么多次 {more:list}][这样大形状的 {larger:list}]，"
        "只能等待：它们{per:each}计算 {others_ns:ms}，"
        "而这里为 {computing_ns:ms}。这是工作量更大，而不是机器慢。",
    ),
)
_EXTRA_BASIS = (
    Text(
        "from what a replay with this work divided evenly saves (its lower quartile; or while slow ranks "
        "stay as slow) to what it saves if nobody does it, and at least 5% either way",
        "从重放中均分此工作所节省的时间（下四分位；或慢 rank 未改善时）到完全不做此工作所节省的时间，且至少 ±5%",
    )
    + _ERROR
)

MESSAGES = {
    "extra": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one computes|compute} {extra_ns:ms} more {per:each} than others do",
            "{ranks:ranks} {per:each}比其他 rank 多计算 {extra_ns:ms}",
        )
        + _EXTRA[0],
        cause=_EXTRA[1],
        action=Text(
            "Do it less often, outside of the step or on the host, or divide it over all ranks (metrics, logging, "
            "evaluation, norms of gradients).",
            "减少执行次数、移出训练步或移到主机上，或分摊到所有 rank（指标、日志、评估、梯度范数）。",
        ),
        basis=_EXTRA_BASIS,
    ),
    "extra_stage": Message(
        summary=Text(
            "Stage imbalance: pipeline stage {stage} ({ranks:ranks}) computes {extra_ns:ms} more {per:each} than other "
            "stages do",
            "流水线阶段不均衡：阶段 {stage}（{ranks:ranks}）{per:each}比其他阶段多计算 {extra_ns:ms}",
        )
        + _EXTRA[0],
        cause=_EXTRA[1] + _LAST,
        action=Text(
            "Move layers from this stage to the others, or split what only it does (output layer and loss, embedding) "
            "over several stages.",
            "把该阶段的部分层移到其他阶段，或把只有它做的部分（输出层和损失、嵌入层）分到多个阶段。",
        ),
        basis=_EXTRA_BASIS,
    ),
    "stage": Message(
        summary=_STAGE,
        cause=Text(
            "All its ranks ({ranks:ranks}) take as long, so its layers are more work; no machine is slow.",
            "它的所有 rank（{ranks:ranks}）用时一样，因此是它的层计算量更大，而不是机器慢。",
        )
        + _LAST,
        action=Text(
            "Move layers from this stage to the others, or split the output layer and the loss over several stages.",
            "把该阶段的部分层移到其他阶段，或把输出层和损失分到多个阶段。",
        ),
        basis=_BASIS,
    ),
    "stage_last": _alone(_STAGE),
    "stage_alone": _alone(
        Text(
            "Stage imbalance or a slow machine: pipeline stage {unit} ({ranks:ranks}) computes {factor:number .2f}x as "
            "long as the mean of the other stages.",
            "流水线阶段不均衡或机器慢：阶段 {unit}（{ranks:ranks}）的计算用时是其他阶段均值的 {factor:number .2f} 倍。",
        )
    ),
    "sequence": Message(
        summary=Text(
            "Sequence length imbalance: the longest micro-batch {per:each} computes {factor:number .2f}x as long as "
            "the mean one.",
            "序列长度不均衡：{per:each}最长的微批的计算时间是平均值的 {factor:number .2f} 倍。",
        ),
        cause=Text(
            "Backward passes are long where the forward pass of the micro-batch is (correlation "
            "{correlation:number .2f}), so lengths of sequences differ; no machine is slow.",
            "微批的反向时间随前向时间变化（相关系数 {correlation:number .2f}），因此是序列长度不同，而不是机器慢。",
        ),
        action=Text(
            "Balance tokens, and for attention their squares, over micro-batches and data-parallel ranks: pack or sort "
            "sequences by length.",
            "在微批和数据并行 rank 之间均衡 词元数（注意力按其平方）：按长度打包或排序序列。",
        ),
        basis=_BASIS,
    ),
    "replica": Message(
        summary=Text(
            "Data-parallel rank {unit} ({ranks:ranks}) computes {factor:number .2f}x as long as the others at all "
            "pipeline stages.",
            "数据并行 rank {unit}（{ranks:ranks}）在所有流水线阶段的计算时间都是其他的 {factor:number .2f} 倍。",
        ),
        cause=Text("Its ranks are slow together, in all micro-batches.", "它的 rank 在所有微批中一起变慢。"),
        action=Text(
            "Check what these ranks share: their hosts, and their part of the data, which may have longer sequences.",
            "检查这些 rank 共用的部分：主机，以及它们的数据（序列可能更长）。",
        ),
        basis=_BASIS,
    ),
    "worker": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one computes|compute} {factor:number .2f}x as long as others of the same stage.",
            "{ranks:ranks} 的计算时间是同阶段其他 rank 的 {factor:number .2f} 倍。",
        ),
        cause=Text("Others of the stage have the same layers.", "同阶段的其他 rank 有相同的层。"),
        action=Text("Check ", "检查") + _MACHINE + Text(", or replace it.", "，或更换机器。"),
        basis=_BASIS,
    ),
    "communication": Message(
        summary=Text(
            "Calls take longer than the median call of their kind, most of all {unit}.",
            "通信调用比同类的中位调用更慢，主要是 {unit}。",
        ),
        cause=Text(
            "They are timed from when all members have entered, so this is not waiting for slow ranks.",
            "从所有成员进入后开始计时，因此不是在等慢的 rank。",
        ),
        action=Text(
            "Check the network: error and retry counters, links that other jobs share, placement of the groups.",
            "检查网络：错误与重传计数、与其他作业共用的链路、通信组的放置。",
        ),
        basis=_BASIS,
    ),
    "unknown": Message(
        summary=Text(
            "The job takes {slowdown:number .2f}x as long as with ideal operations, and no single cause explains half "
            "of that.",
            "作业用时为理想情况的 {slowdown:number .2f} 倍，没有哪个原因能解释其中一半。",
        ),
        cause=Text(
            "It is neither slow ranks, uneven stages, uneven micro-batches nor calls; computing takes longer at other "
            "times.",
            "不是慢 rank、不均衡的阶段、不均衡的微批或通信；计算时间另有波动。",
        ),
        action=Text(
            "Record a few steps with a profiler, and look for garbage collection, changing clocks and other processes.",
            "用性能分析器记录几步，查找垃圾回收、频率变化和其他进程。",
        ),
        basis=Text("it is unknown how much can be saved", "能节省多少未知"),
    ),
}
"""`extra_stage` or `extra` of what kernels show; else by cause, with `stage_last` or `stage_alone` if the last or
another stage has one recorded rank."""


@dataclass(frozen=True)
class Limits:
    """What is worth a finding."""

    saving_ratio: float = limit(
        0.02, "of the mean step, that it saves", "chosen by us: smaller gains are not worth one"
    )
    communication_ratio: float = limit(
        0.05, "of the mean step, that ideal calls save", "chosen by us: some calls always take longer than the median"
    )
    error_ratio: float = limit(
        0.05, "of the recorded time, that the replay is off", "the study leaves out jobs from there on"
    )
    slowdown_factor: float = limit(
        1.1,
        "times the ideal step, for an unknown cause",
        "from there on, the study that `slowdowns` quotes calls it slow",
    )


_EVIDENCE = ("names", "only", "larger", "stage", "extra_ns", "computing_ns", "others_ns", "gone_ns", "error_ratio")


@rule(
    "uneven-work",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.SEEN_LATE, time="computing"),
    dimension="computation",
    computed=Text(
        "Replays the job with work that only some ranks or stages do divided evenly (`extra_work`), and "
        "jobs of recorded operations without each cause of uneven work (`slowdown_causes`). The saving "
        "is what such a replay saves, its share if there are several causes.",
        "重放作业：把只有部分 rank 或阶段执行的工作平均分配（`extra_work`）；对记录了操作的作业，逐一去掉"
        "工作不均的原因（`slowdown_causes`）。节省为重放所得，有多个原因时取其份额。",
    ),
    shows=("extra_work", "slowdown_causes"),
    explains=("pipeline-bubble:uneven",),
)
def uneven_work(
    slowdown_causes: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    breakdown: pl.DataFrame,
    extra_work: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report what ranks or pipeline stages compute that others do not (`extra_work`), and uneven pipeline stages,
    micro-batches of uneven length, slow replicas and long calls of jobs whose operations were recorded, and jobs that
    are slow for an unknown reason.

    The saving is what a replay without the cause saves, its share if there are several. Slow ranks are reported only if
    `slow_ranks` does not list them.
    """
    per = per_of(breakdown)
    for row in () if extra_work is None else extra_work.iter_rows(named=True):
        if row["saving_ns"] >= limits.saving_ratio * row["step_ns"]:
            yield _extra(row, per, limits)
    if slowdown_causes is None:
        return
    slowdown = slowdown_causes["slowdown_factor"][0]
    told = set(accused(slow_ranks))
    least = {"communication": limits.communication_ratio}
    for row in slowdown_causes.filter(pl.col("cause") != "unknown").iter_rows(named=True):
        ranks = [] if row["ranks"] is None else listed(row["ranks"])
        known = row["cause"] in ("worker", "replica") and told.issuperset(ranks)
        saving = max(row["saving_ns"], row["mended_ns"] or 0)
        if saving >= least.get(row["cause"], limits.saving_ratio) * row["replayed_ns"] and not known:
            yield _finding(row, ranks, per, limits)
    unknown = slowdown_causes.filter(cause="unknown")
    if slowdown and slowdown >= limits.slowdown_factor and unknown["is_named"].any():
        yield Finding(
            rule="uneven-work",
            message="unknown",
            parameters={"slowdown": slowdown},
            saving_high_ns=max(0, *unknown["saving_ns"]),
            per=per,
            evidence={"slowdown_factor": slowdown},
            confidence="possible",
        )


def _extra(row: dict[str, Any], per: Per, limits: Limits) -> Finding:
    """Work that only some ranks do; not a machine that is slow."""
    ranks = listed(row["ranks"])
    message = "extra" if row["stage"] is None else "extra_stage"
    is_off = abs(row["error_ratio"]) >= limits.error_ratio
    names = [short_name(name) for name in row["names"]]
    known = {
        **row,
        "ranks": ranks,
        "names": names if row["only"] else None,
        "more": None if row["only"] or row["larger"] else names,
        "larger": names if row["larger"] else None,
        "last": row["stage"] if row["last"] else None,
        "error_ratio": abs(row["error_ratio"]) if is_off else None,
    }
    low = 0 if is_off else min(row["saving_low_ns"], row["alone_ns"])
    return Finding(
        rule="uneven-work",
        message=message,
        parameters={name: known[name] for name in sorted(parameters_of(MESSAGES[message]))},
        saving_ns=row["saving_ns"],
        saving_ratio=row["saving_ns"] / row["step_ns"],
        **widened(row["saving_ns"], low, max(row["saving_high_ns"], row["gone_ns"])),
        replayed=True,
        per=per,
        where=place(ranks),
        evidence={"kind": "uneven", **{name: row[name] for name in _EVIDENCE}},
    )


def _finding(row: dict[str, Any], ranks: list[int], per: Per, limits: Limits) -> Finding:
    message = row["cause"]
    if row["is_alone"]:
        message = "stage_last" if row["is_last"] else "stage_alone"
    is_off = abs(row["error_ratio"]) >= limits.error_ratio
    known = {
        **row,
        "error_ratio": abs(row["error_ratio"]) if is_off else None,
        "last": row["unit"] if row["is_last"] else None,
        "ranks": ranks,
    }
    return Finding(
        rule="uneven-work",
        message=message,
        parameters={name: known[name] for name in sorted(parameters_of(MESSAGES[message]))},
        saving_ns=row["saving_ns"],
        saving_ratio=row["saving_ns"] / row["replayed_ns"],
        saving_low_ns=0 if is_off else max(0, min(row["saving_low_ns"], row["saving_ns"])),
        saving_high_ns=max(row["saving_high_ns"], row["saving_ns"], row["mended_ns"] or 0),
        replayed=True,
        per=per,
        where=place(ranks) if ranks else {},
        evidence={name: row[name] for name in ("cause", "unit", "factor", "correlation", "explained", "error_ratio")},
    )
