"""A device stops for long while its host does nothing that was recorded: perhaps it collects garbage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, platform_of, saved
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import stopped
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When such stops are worth a finding, and what speaks against garbage collection."""

    idle_ratio: float = limit(0.02, "of the mean step", "chosen by us: less is not worth a finding")
    every_ratio: float = limit(0.75, "of the steps, with a stop", "chosen by us: full collections are rarer")
    every_steps: int = limit(4, "steps", "chosen by us: of fewer, it is unknown whether it recurs")


_SUMMARY = Text(
    "{ranks:Ranks} {ranks:one stops|stop} for {total_ns:ms}[, {when:when}][, on rank {worst_rank}], with the host "
    "doing nothing that was recorded and the device idle ({ratio:percent} of the recorded time).",
    "{ranks:ranks} 停顿 {total_ns:ms}[，{when:when}出现][（rank {worst_rank}）]：其间主机没有任何被记录的活动，"
    "设备空闲（占记录时间的 {ratio:percent}）。",
)
_BASIS = Text(
    "at most these stops, on the rank that loses most in each {per:noun}, spread over all {per:nouns}",
    "不超过这些停顿（取每{per:noun}损失最多的 rank），平均到每{per:noun}",
)
_LOOK: Choices = {
    (PYTORCH, None): Text(
        "record Python functions for a few {per:nouns} (with_stack=True)",
        "对若干{per:noun}记录 Python 函数（with_stack=True）",
    ),
    (MINDSPORE, None): Text("run `py-spy dump` on the process", "对该进程运行 `py-spy dump`"),
    (None, None): Text(
        "record Python functions for a few {per:nouns}, or run `py-spy dump` on the process",
        "对若干{per:noun}记录 Python 函数，或对该进程运行 `py-spy dump`",
    ),
}

MESSAGES = {
    "some": Message(
        _SUMMARY,
        Text(
            "Python's garbage collection does this, and no collection was recorded: {count:count stop|stops}, the "
            "longest of {longest_ns:ms}[, in `{function}`]. Other explanations: Python code that the recorder does not "
            "see (logging, evaluation, a lock), swapping, or processors that other processes took.",
            "Python 垃圾回收会造成这种现象，而记录中没有回收事件：共 {count} 次停顿，最长 {longest_ns:ms}"
            "[，位于 `{function}`]。其他可能：记录器看不到的 Python 代码（日志、评估、锁）、换页，"
            "或处理器被其他进程占用。",
        ),
        framed(
            Text(
                "Try it: call gc.freeze() after warm-up and gc.disable(), and gc.collect() on all ranks in the same "
                "{per:noun}, every few hundred. If the stops stay, ",
                "可先验证：在预热后调用 gc.freeze() 和 gc.disable()，并让所有 rank 每隔几百{per:noun}同时调用 "
                "gc.collect()。若停顿仍在，",
            ),
            _LOOK,
            Text(
                ", and check swapping and other processes on that host.",
                "，并检查该主机的换页情况和其他进程。",
            ),
        ),
        basis=_BASIS,
    ),
    "every": Message(
        _SUMMARY,
        Text(
            "It does so in nearly every {per:noun} ({count:count stop|stops}, the longest of {longest_ns:ms}[, in "
            "`{function}`]), so code of the script that the recorder does not see (logging, a lock, work on data) is "
            "more likely than Python's garbage collection, which is rarer.",
            "几乎每{per:noun}都有（共 {count} 次，最长 {longest_ns:ms}[，位于 `{function}`]），"
            "因此更可能是记录器看不到的脚本代码（日志、锁、数据处理），而不是较少发生的 Python 垃圾回收。",
        ),
        framed(
            Text("To see what runs, ", "要查看其间运行的是什么，"),
            _LOOK,
            Text(
                ". If it is nothing of the script, try gc.freeze() and gc.disable().",
                "。若与脚本无关，可尝试 gc.freeze() 和 gc.disable()。",
            ),
        ),
        basis=_BASIS,
    ),
    "collected": Message(
        _SUMMARY,
        Text(
            "{count:count stop|stops}, the longest of {longest_ns:ms}[, in `{function}`]. Python's garbage collection "
            "was recorded, and this is none. What is left: Python code that the recorder does not see (logging, "
            "evaluation, a lock), swapping, or processors that other processes took.",
            "共 {count} 次停顿，最长 {longest_ns:ms}[，位于 `{function}`]。记录了 Python 垃圾回收，而这些停顿不是回收。"
            "其余可能：记录器看不到的 Python 代码（日志、评估、锁）、换页，或处理器被其他进程占用。",
        ),
        framed(
            Text("To see what runs, ", "要查看其间运行的是什么，"),
            _LOOK,
            Text(
                ", and check swapping and other processes on that host.",
                "，并检查该主机的换页情况和其他进程。",
            ),
        ),
        basis=_BASIS,
    ),
}

WAITS = re.compile(r"(?i)sleep|acquire|\bwait|\bread\b|recv|select|poll|\bitem\b|synchronize")
"""Python functions that wait for something else."""


@rule(
    "host-stall",
    MESSAGES,
    claim=Claim(Turn.KNOWN_CALLS, time_in="cause"),
    dimension="schedule",
    computed=Text(
        "Looks for uninterrupted idle time of a device in which no thread that launches work has a recorded call, and "
        "leaves out the first step. Where garbage collections were recorded, it is none of them. The saving is this "
        "time on the rank that loses most in each step, at most what a replay of the job without it saves.",
        "查找设备连续空闲、且下发线程没有任何被记录的调用的时间，不计首步。若记录了垃圾回收，则这些时间不是回收。"
        "节省为每步中损失最多的 rank 的这段时间，且不超过去掉它后重放作业所得的节省。",
    ),
    shows=("host_stalls",),
    explains=("slow-rank:dispatch", "long-step:dispatch", "idle-time:dispatch"),
)
def host_stall(
    host_stalls: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report long stops of devices whose hosts do nothing that was recorded, as if they collected garbage, or did
    something else where that was recorded."""
    waits = pl.col("function").fill_null("").str.contains(WAITS.pattern)
    stalls = host_stalls.filter(~waits)
    calls = stalls.with_columns(
        calls=pl.lit(1, pl.Int64), total_ns="duration_ns", idle_ns="duration_ns", longest_ns="duration_ns"
    )
    found = stopped(calls, breakdown, pl.col("idle_ns") >= limits.idle_ratio * pl.col("step_ns"))
    if found is None or platform_of(ranks).device == CPU:
        return
    if found.steps == 1 and per_of(breakdown) == "recording":  # start-up cannot be told from a stall
        return
    first = breakdown.group_by("rank").agg(first=pl.col("step").min(), steps=pl.len())
    later = (pl.col("step") > pl.col("first")) | (pl.col("steps") == 1)
    rows = calls.filter(pl.col("rank").is_in(list(found.ranks))).join(first, on="rank").filter(later)
    worst = rows.sort("duration_ns", "rank", "start_ns", descending=[True, False, False]).row(0, named=True)
    own = rows.filter(pl.col("rank") == found.ranks[0])
    recorded = int(breakdown.filter(pl.col("rank") == found.ranks[0])["window_ns"].sum())
    ratio = int(own["duration_ns"].sum()) / max(recorded, 1)
    per, mean_ns = per_of(breakdown), found.cost_ns / found.every
    often = own["step"].n_unique() >= limits.every_ratio * found.steps and found.steps >= limits.every_steps
    causes = (
        rows.group_by("cause").agg(pl.col("duration_ns").sum()).sort("duration_ns", "cause", descending=[True, False])
    )
    steps = sorted(set(own["step"]))
    finding = Finding(
        rule="host-stall",
        message="collected" if own["collections"].any() else "every" if often else "some",
        parameters={
            "total_ns": int(own["duration_ns"].sum()),
            "when": None if often else {"period": None, "steps": steps, "of": found.steps},
            "ratio": ratio,
            "count": own.height,
            "longest_ns": worst["duration_ns"],
            "function": worst["function"],
        },
        saving_ns=saved(per, mean_ns, found.every),
        saving_ratio=min(mean_ns / found.step_ns, ratio) if found.step_ns else 0.0,
        saving_low_ns=0,
        per=per,
        evidence={
            "cause": causes["cause"][0],
            "total_ns": int(own["duration_ns"].sum()),
            "stalls": own.height,
            "longest_ns": worst["duration_ns"],
            "steps": steps,
        },
        confidence="possible",
        span_ns=(worst["start_ns"], worst["start_ns"] + worst["duration_ns"]),
        span_rank=worst["rank"],
    ).on(found.ranks)
    yield replace(finding, where={**finding.where, "steps": steps})
