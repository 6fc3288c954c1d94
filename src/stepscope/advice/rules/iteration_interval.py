"""Steps start late: the device waits between the end of a step and the first operator of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.input.input_stages import BOTTLENECK
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When the interval between steps is worth a finding."""

    interval_ns: int = limit(500_000, "ns, mean of the steps without the first", "MindSpore Insight")


def _see(queues: str, queues_zh: str, more: Text | None = None) -> Text:
    return Text(
        f"See «`stepscope input`» for the queues {queues}; if they are full, do less between steps: callbacks, logging "
        "and summaries less often",
        f"用 «`stepscope input`» 查看{queues_zh}队列；若队列是满的，减少步与步之间的工作：降低回调、日志和汇总的频率",
    ) + (more or Text(".", "。"))


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
                "The device waits for its next batch, or for the host to launch the step.[ The input is slow at this "
                "stage: {slow_stage:stage}.]",
                "设备在等待下一批数据，或等待主机下发这一步。[输入在这一阶段较慢：{slow_stage:stage}。]",
            ),
            (None, CPU): Text(
                "Training waits for its next batch, or for what the script does between steps.[ The input is slow at "
                "this stage: {slow_stage:stage}.]",
                "训练在等待下一批数据，或等待脚本在步与步之间的工作。[输入在这一阶段较慢：{slow_stage:stage}。]",
            ),
        },
        action={
            (MINDSPORE, CPU): _see("of the dataset", "数据集的"),
            (MINDSPORE, None): _see(
                "between dataset and device",
                "数据集与设备之间的",
                Text(", several steps sunk at once (sink_size).", "，一次下沉多步（sink_size）。"),
            ),
            (None, None): _see("of the input", "输入的"),
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
    dimension="dataloader",
    computed=Text(
        "Averages the interval between steps that the device's own step table states, without the first, "
        "and reports it beyond `interval_ns`. The saving is the excess over that limit on the rank with "
        "the longest interval, less what findings about idle time and data already claim.",
        "取设备步骤表中步与步之间间隔的平均值（不含首步），超过 `interval_ns` 时报告。节省为间隔最长的 "
        "rank 超出该限值的部分，并扣除空闲时间和数据加载结论已计入的部分。",
    ),
    shows=("step_trace", "input_stages"),
)
def iteration_interval(
    device_steps: pl.DataFrame,
    step_trace: pl.DataFrame,
    input_stages: pl.DataFrame | None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report long intervals between steps, if the device's own step table states them.

    The first step has no interval, so it does not count unless it is the only one. The saving is the excess of the mean
    over the limit, on the rank with the longest interval: shorter intervals are not achievable. Idle time that
    timelines show is left to `idle-time`.
    """
    in_table = step_trace.join(device_steps, on=["rank", "step"], how="semi").drop_nulls("interval_ns")
    counted = (pl.int_range(pl.len()).over("rank") > 0) | (pl.len().over("rank") == 1)
    late = (
        in_table.sort("rank", "start_ns")
        .filter(counted)
        .group_by("rank")
        .agg(pl.col("interval_ns").mean(), pl.col("step_ns").mean(), steps=pl.len())
        .filter(pl.col("interval_ns") > limits.interval_ns)
        .sort("interval_ns", descending=True)
    )
    if late.is_empty():
        return
    worst = late.row(0, named=True)
    stage = _slow_stage(input_stages, late["rank"])
    saving = worst["interval_ns"] - limits.interval_ns
    yield Finding(
        rule="iteration-interval",
        message="late",
        parameters={
            "interval_ns": worst["interval_ns"],
            "limit_ns": limits.interval_ns,
            "slow_stage": stage,
        },
        saving_ns=round(saving),
        saving_ratio=saving / worst["step_ns"] if worst["step_ns"] else 0.0,
        saving_high_ns=round(worst["interval_ns"]),
        evidence={
            "interval_ns": round(worst["interval_ns"]),
            "step_ns": round(worst["step_ns"]),
            "steps": worst["steps"],
            "slow_stage": stage,
        },
        confidence="possible" if stage is None else "likely",
    ).on(late["rank"])


def _slow_stage(stages: pl.DataFrame | None, ranks: pl.Series) -> str | None:
    """The stage of the input that is the bottleneck on any of these ranks."""
    if stages is None:
        return None
    slow = stages.filter((pl.col("verdict") == BOTTLENECK) & pl.col("rank").is_in(ranks.implode()))
    return str(slow["stage"][0]) if slow.height else None
