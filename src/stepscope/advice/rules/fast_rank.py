"""One or few ranks compute faster than all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of, place
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.analysis.rank_lists import listed
from stepscope.limits import limit

MESSAGES = {
    "fast": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one computes|compute} faster than the other {others:count rank|ranks}: {own_ns:ms} "
            "{per:each} against {others_ns:ms}, for the same work.",
            "{ranks:ranks} 的计算比其余 {others} 个 rank 快：工作相同，{per:each} {own_ns:ms}，其余为 {others_ns:ms}。",
        ),
        cause=Text(
            "The others may all be slow, or this one special: which of both was not recorded. If all were as fast, "
            "{if_alike_ns:ms} {per:each} would be saved ({if_alike_ratio:percent}).",
            "可能是其余的都慢，也可能是这一个特殊：记录中看不出。若全部一样快，{per:each}可节省 {if_alike_ns:ms}"
            "（{if_alike_ratio:percent}）。",
        ),
        action={
            (None, None): Text(
                "Compare it with another rank: clock, power cap, temperature, versions of drivers and firmware, other "
                "processes on the device, and the lengths of its sequences.",
                "把它与另一个 rank 对比：频率、功耗上限、温度、驱动和固件版本、设备上的其他进程，以及序列长度。",
            ),
            (None, CPU): Text(
                "Compare it with another rank: number of threads, other processes on the processors and their "
                "frequency, and the lengths of its sequences.",
                "把它与另一个 rank 对比：线程数、处理器上的其他进程及其频率，以及序列长度。",
            ),
        },
        basis=Text("nothing if the others cannot be as fast", "若其余的无法一样快则为零") + OFF,
    )
}


@dataclass(frozen=True)
class Limits:
    """What is worth a finding."""

    if_alike_ratio: float = limit(0.03, "of the mean step, if all were as fast", "chosen by us: devices differ by less")
    medium_ratio: float = limit(0.1, "of the mean step, to be of medium severity", "chosen by us: it may be nothing")


@rule(
    "fast-rank",
    MESSAGES,
    whole_job=True,
    dimension="computation",
    computed=Text(
        "Finds ranks that compute the same kernels clearly faster than all others of their program. "
        "Whether the others could be as fast is unknown, so no saving is claimed; the upper bound is "
        "what a replay with all ranks as fast saves.",
        "找出执行相同算子时明显快于同程序其他所有 rank 的 rank。其他 rank 能否同样快未知，因此不计节省；"
        "上限为所有 rank 同样快的重放所得。",
    ),
    shows=("fast_ranks",),
)
def fast_rank(fast_ranks: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report ranks that compute faster than all others (`fast_ranks`). As it is unknown whether the others could be as
    fast, nobody is accused and no saving is claimed; at most it is what a replay with all as fast saves."""
    for row in fast_ranks.iter_rows(named=True):
        if row["if_alike_ratio"] < limits.if_alike_ratio:
            continue
        ranks = listed(row["ranks"])
        known = ("own_ns", "others_ns", "if_alike_ns", "if_alike_ratio", "others")
        yield Finding(
            rule="fast-rank",
            message="fast",
            parameters={**{name: row[name] for name in known}, "ranks": ranks, "error_ratio": replay_error(row)},
            saving_high_ns=row["if_alike_ns"],
            per=per_of(breakdown),
            where=place(ranks),
            evidence={"kind": "faster", **{name: row[name] for name in (*known, "error_ratio")}},
            confidence="possible",
            least="medium" if row["if_alike_ratio"] >= limits.medium_ratio else "low",
        )
