"""Steps start late: the device waits between the end of a step and the first operator of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message
from stepscope.advice.platforms import CPU, MINDSPORE, platform_of
from stepscope.advice.ranks import place, shared
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.templates import Text
from stepscope.analysis.input.input_stages import BOTTLENECK
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When the interval between steps is worth a finding."""

    interval_ns: int = limit(500_000, "ns, mean of the steps without the first", "MindSpore Insight")


LIMITS = Limits()

_RARER = Text(
    "do less between steps: callbacks, logging and summaries less often",
    "减少步与步之间的工作：降低回调、日志和汇总的频率",
)
_STAGE = Text("[ The input is slow at this stage: {slow_stage:stage}.]", "[输入在这一阶段较慢：{slow_stage:stage}。]")

MESSAGES = {
    "late": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one starts|start} steps late: {interval_ns:ms} from the end of one to the first "
            "operator of the next[ on rank {worst_rank}], more than {limit_ns:ms}.",
            "{ranks:ranks} 的训练步开始过晚：从上一步结束到下一步的第一个算子为 {interval_ns:ms}"
            "[（rank {worst_rank}）]，"
            "超过 {limit_ns:ms}。",
        ),
        cause={
            (None, None): Text(
                "The device waits for its next batch, or for the host to launch the step.",
                "设备在等待下一批数据，或等待主机下发这一步。",
            )
            + _STAGE,
            (None, CPU): Text(
                "Training waits for its next batch, or for what the script does between steps.",
                "训练在等待下一批数据，或等待脚本在步与步之间的工作。",
            )
            + _STAGE,
        },
        action={
            (MINDSPORE, CPU): Text(
                "See `stepscope input` for the queues of the dataset; if they are full, ",
                "用 `stepscope input` 查看数据集的队列；若队列是满的，",
            )
            + _RARER
            + Text(".", "。"),
            (MINDSPORE, None): Text(
                "See `stepscope input` for the queues between dataset and device; if they are full, ",
                "用 `stepscope input` 查看数据集与设备之间的队列；若队列是满的，",
            )
            + _RARER
            + Text(", several steps sunk at once (sink_size).", "，一次下沉多步（sink_size）。"),
            (None, None): Text(
                "See `stepscope input` for the queues of the input; if they are full, ",
                "用 `stepscope input` 查看输入的队列；若队列是满的，",
            )
            + _RARER
            + Text(".", "。"),
        },
        basis=Text(
            "from an interval as long as the limit to none at all", "下限为间隔缩短到界限值，上限为完全没有间隔"
        ),
    )
}


@rule(
    "iteration-interval",
    MESSAGES,
    claim=Claim(
        Turn.STEP_START,
        "data_loading",
        yields=("data_loading", "dispatch", "synchronisation", "garbage_collection", "python"),
    ),
)
def iteration_interval(
    device_steps: pl.DataFrame,
    step_trace: pl.DataFrame,
    input_stages: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report long intervals between steps, if the device's own step table states them.

    The first step has no interval, so it does not count unless it is the only one. The saving is the excess of the mean
    over the limit, on the rank with the longest interval: shorter intervals are not achievable. Idle time that
    timelines show is left to `idle-time`.
    """
    stated = step_trace.join(device_steps, on=["rank", "step"], how="semi").drop_nulls("interval_ns")
    counted = (pl.int_range(pl.len()).over("rank") > 0) | (pl.len().over("rank") == 1)
    late = (
        stated.sort("rank", "start_ns")
        .filter(counted)
        .group_by("rank")
        .agg(pl.col("interval_ns").mean(), pl.col("step_ns").mean(), steps=pl.len())
        .filter(pl.col("interval_ns") > limits.interval_ns)
        .sort("interval_ns", descending=True)
    )
    if late.is_empty():
        return
    worst = late.row(0, named=True)
    numbers = late["rank"].to_list()
    stage = _slow_stage(input_stages, numbers)
    saving = worst["interval_ns"] - limits.interval_ns
    yield Finding(
        rule="iteration-interval",
        message="late",
        parameters={
            **shared(numbers, worst["rank"]),
            "interval_ns": worst["interval_ns"],
            "limit_ns": limits.interval_ns,
            "slow_stage": stage,
        },
        saving_ns=round(saving),
        saving_ratio=saving / worst["step_ns"] if worst["step_ns"] else 0.0,
        saving_high_ns=round(worst["interval_ns"]),
        where=place(numbers),
        evidence={
            "interval_ns": round(worst["interval_ns"]),
            "step_ns": round(worst["step_ns"]),
            "steps": worst["steps"],
            "slow_stage": stage,
        },
        platform=platform_of(ranks, numbers),
    )


def _slow_stage(stages: pl.DataFrame | None, ranks: list[int]) -> str | None:
    """The stage of the input that is the bottleneck on any of these ranks."""
    if stages is None:
        return None
    slow = stages.filter((pl.col("verdict") == BOTTLENECK) & pl.col("rank").is_in(ranks))
    return str(slow["stage"][0]) if slow.height else None
