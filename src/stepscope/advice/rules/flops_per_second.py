"""Ranks that compute at a lower rate than the ranks on average."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CPU, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.cluster_facts import by_formula, facts, stated
from stepscope.analysis.job.cluster_advice import RATE
from stepscope.analysis.rank_lists import accused

_COMPARE = Text(
    "Compare operators of the same name with «`stepscope flops`» and «`stepscope ops`» with «--rank»; if they take "
    "longer, check ",
    "用带 «--rank» 的 «`stepscope flops`» 和 «`stepscope ops`» 对比同名算子；若耗时更长，检查",
)

MESSAGES = {
    "low": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one computes|compute} at a lower rate than the mean of {mean_of} ranks: {rate:giga} "
            "GFLOP/s[ on rank {worst_rank}], {off:number .2f}% below the mean.",
            "{ranks:ranks} 的计算速率低于 {mean_of} 个 rank 的平均：{rate:giga} GFLOP/s[（rank {worst_rank}）]，"
            "比平均低 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "The same operators take longer there, or the rank has other operators, as the ends of a pipeline do.",
                "同样的算子在那里耗时更长，或者该 rank 的算子不同（如流水线的首尾）。",
            )
        ),
        action={
            (None, None): _COMPARE + Text("clock, power cap and temperature.", "设备的频率、功耗上限和温度。"),
            (None, CPU): _COMPARE + Text("clock and threads.", "频率和线程数。"),
        },
    )
}


@rule(
    "flops-per-second",
    MESSAGES,
    whole_job=True,
    dimension="computation",
    computed=Text(
        "Compares the stated FLOPs per second of each rank with the mean of the ranks by the formula of "
        "MindSpore Insight, without ranks that a replay names as slow. A distance from a mean shows no "
        "cost, so no saving is claimed.",
        "按 MindSpore Insight 的公式，将各 rank 给出的每秒浮点运算数与平均值比较，不含重放已指出的慢 rank。"
        "与平均值的差距不等于代价，因此不计节省。",
    ),
    shows=("cluster_advice", "rank_flops"),
)
def flops_per_second(
    device_steps: pl.DataFrame,
    cluster_advice: pl.DataFrame,
    rank_flops: pl.DataFrame,
    slow_ranks: pl.DataFrame | None,
) -> Iterator[Finding]:
    """State which ranks compute at a low rate (`flops_per_second` of MindSpore Insight) if a profile with a device's
    step table states FLOPs, unless a replay names them as slow already."""
    of_devices = rank_flops.join(device_steps, on="rank", how="semi")
    known = of_devices.filter(pl.col("found_by") == "stated")["rank"].to_list()
    named = accused(slow_ranks)
    rows = [row for row in facts(cluster_advice, RATE) if row["rank"] in known and row["rank"] not in named]
    if rows:
        found = stated("flops-per-second", "low", rows[0], rate=rows[0]["flops_per_s"])
        yield found.on([row["rank"] for row in rows])
