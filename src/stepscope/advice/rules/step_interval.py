"""Ranks whose steps begin later than those of the ranks on average."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.cluster_facts import by_formula, facts, stated
from stepscope.analysis.job.cluster_advice import INTERVAL
from stepscope.analysis.rank_lists import accused

_LATE = Text(
    "{ranks:Ranks} {ranks:one begins|begin} steps later than the mean of {mean_of} ranks: the interval before forward "
    "is {interval_ns:ms}[ on rank {worst_rank}], {off:number .2f}% above the mean.",
    "{ranks:ranks} 的训练步开始得比 {mean_of} 个 rank 的平均晚：前向之前的间隔为 {interval_ns:ms}"
    "[（rank {worst_rank}）]，比平均高 {off:number .2f}%。",
)
_WHY = Text(
    "The interval is what the device waits for its next batch, or for the host to launch the step.",
    "间隔是设备等待下一批数据、或等待主机下发这一步的时间。",
)
_ON_CPU = Text(
    "The interval is what training waits for its next batch, or what the script does between steps.",
    "间隔是训练等待下一批数据的时间，或脚本在步与步之间的工作。",
)
_HARMLESS = Text(
    " A replay of the job names none of them as slow: others take as long meanwhile.",
    "作业重放没有把它们列为慢 rank：其间其他 rank 同样耗时。",
)
_ACTION = Text(
    "Compare the input and the host of these ranks with those of others: «`stepscope input`» and «`stepscope host`» "
    "with «--rank».",
    "把这些 rank 的输入和主机与其他 rank 对比：带 «--rank» 的 «`stepscope input`» 和 «`stepscope host`»。",
)

MESSAGES = {
    "late": Message(summary=_LATE, cause=by_formula(_WHY, cpu=_ON_CPU), action=_ACTION),
    "harmless": Message(summary=_LATE, cause=by_formula(_WHY, _HARMLESS, cpu=_ON_CPU + _HARMLESS), action=_ACTION),
}


@rule(
    "step-interval",
    MESSAGES,
    whole_job=True,
    dimension="schedule",
    computed=Text(
        "Compares the interval before the steps of each rank in the device's step table with the mean of "
        "the ranks by the formula of MindSpore Insight, without ranks that a replay names as slow. A "
        "distance from a mean shows no cost, so no saving is claimed.",
        "按 MindSpore Insight 的公式，将设备步骤表中各 rank 的步前间隔与平均值比较，不含重放已指出的慢 "
        "rank。与平均值的差距不等于代价，因此不计节省。",
    ),
    shows=("cluster_advice",),
)
def step_interval(
    device_steps: pl.DataFrame, cluster_advice: pl.DataFrame, slow_ranks: pl.DataFrame | None
) -> Iterator[Finding]:
    """State which ranks of a device's step table begin steps late (`step_interval` of MindSpore Insight), unless a
    replay names them as slow already."""
    named = accused(slow_ranks)
    rows = [
        row
        for row in facts(cluster_advice, INTERVAL)
        if row["rank"] not in named and row["rank"] in device_steps["rank"].to_list()
    ]
    if not rows:
        return
    worst = rows[0]
    message = "late" if slow_ranks is None else "harmless"
    found = stated("step-interval", message, worst, interval_ns=worst["interval_ns"])
    yield found.on([row["rank"] for row in rows])
