"""In some steps, all ranks need longer for the same kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CUDA, NPU, ROCM, Finding, per_of, widened
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.advice.rules.idle_gaps import short_name
from stepscope.limits import limit

_WHERE = Text(
    " in {slow_count} of {steps:windows} ({slow_steps:steps}): {excess_ns:ms} more in each, {factor:number .2f}x as "
    "long as otherwise[, mostly {names:list}].",
    "（{steps:windows}中的 {slow_count} 次，{slow_steps:steps}）：每次多 {excess_ns:ms}，为平时的 "
    "{factor:number .2f} 倍[，主要是 {names:list}]。",
)


def _message(who: Text) -> Message:
    return Message(
        summary=who + _WHERE,
        cause=Text(
            "They do the same work as in the other ones, and no rank differs from the others: what all share is "
            "slower then.",
            "它们的工作与其他时候相同，且没有哪个 rank 与众不同：变慢的是共用的部分。",
        ),
        action=framed(
            Text(
                "Look at what else happens at these times: clocks and temperature",
                "检查这些时间还发生了什么：频率和温度",
            ),
            {
                (None, CUDA): Text(
                    ", power caps (`nvidia-smi -q -d PERFORMANCE,CLOCK`)",
                    "、功耗上限（`nvidia-smi -q -d PERFORMANCE,CLOCK`）",
                ),
                (None, ROCM): Text(", power caps (`rocm-smi --showclocks`)", "、功耗上限（`rocm-smi --showclocks`）"),
                (None, NPU): Text(", power caps (`npu-smi info`)", "、功耗上限（`npu-smi info`）"),
                (None, None): Text("", ""),
            },
            Text(
                ", other jobs on the same machines, and copies or communication that run meanwhile.",
                "、同一机器上的其他作业，以及同时进行的拷贝或通信。",
            ),
        ),
        basis=Text(
            "from the lower to the upper quartile of what a replay with this work as fast as otherwise saves, and "
            "at least 5% either way",
            "这些工作与平时一样快的重放所节省时间的下四分位到上四分位，且至少 ±5%",
        )
        + OFF,
    )


MESSAGES = {
    "computing": _message(Text("All ranks compute more slowly", "所有 rank 的计算都变慢")),
    "memory": _message(Text("The memory copies of all ranks are slower", "所有 rank 的内存拷贝都变慢")),
    "computing/one": _message(Text("The rank computes more slowly", "该 rank 的计算变慢")),
    "memory/one": _message(Text("The memory copies of the rank are slower", "该 rank 的内存拷贝变慢")),
}
"""By kind of work, and whether only one rank was recorded."""


@dataclass(frozen=True)
class Limits:
    """What is worth a finding."""

    cost_ratio: float = limit(0.02, "of the mean step, that it costs", "chosen by us: smaller gains are not worth one")


@rule(
    "slowed-steps",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.SEEN_IDLE, time_in="kind"),
    dimension="computation",
    computed=Text(
        "Compares steps with one another and finds those in which nearly all ranks need longer for the "
        "same kernels. The saving is what a replay with these kernels as fast as in the other steps "
        "saves, averaged over all steps.",
        "将各步相互比较，找出几乎所有 rank 执行相同算子都变慢的步。节省为这些算子与其他步一样快的重放所得，"
        "按所有步平均。",
    ),
    shows=("slowed_steps",),
    explains=("long-step",),
)
def slowed_steps(slowed_steps: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report steps in which all ranks need longer for the same kernels (`slowed_steps`); nobody is accused.

    The saving is what a replay with these kernels as fast as in the other steps saves, in the mean of all steps.
    """
    per = per_of(breakdown)
    for row in slowed_steps.iter_rows(named=True):
        if row["cost_ratio"] < limits.cost_ratio:
            continue
        error = replay_error(row)
        kind = row["kind"] if row["compared_ranks"] > 1 else f"{row['kind']}/one"
        yield Finding(
            rule="slowed-steps",
            message=kind,
            parameters={
                **{name: row[name] for name in ("slow_steps", "steps", "excess_ns", "factor")},
                "names": [short_name(name) for name in row["names"]],
                "slow_count": len(row["slow_steps"]),
                "error_ratio": error,
            },
            saving_ns=row["cost_ns"],
            saving_ratio=row["cost_ratio"],
            **widened(row["cost_ns"], 0 if error else row["saving_low_ns"], row["saving_high_ns"]),
            replayed=True,
            per=per,
            where={"steps": row["slow_steps"]},
            evidence={
                name: row[name] for name in ("kind", "factor", "excess_ns", "names", "compared_ranks", "error_ratio")
            },
        )
