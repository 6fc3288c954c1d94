"""Pipeline stages with more work than the stages on average."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.cluster_facts import by_formula, facts, stated
from stepscope.analysis.job.cluster_advice import STAGE_FLOPS

MESSAGES = {
    "more": Message(
        summary=Text(
            "Pipeline stage {stage} ({ranks:ranks}) has {flops:giga} GFLOPs {per:each} on each rank, {off:number .2f}% "
            "above the mean of {mean_of} stages.",
            "流水线阶段 {stage}（{ranks:ranks}）每个 rank {per:each} {flops:giga} GFLOPs，"
            "比 {mean_of} 个阶段的平均高 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "Layers are divided unevenly among the stages; the others wait for the stage with the most.",
                "各层在阶段之间划分不均；其他阶段等待工作量最大的阶段。",
            )
        ),
        action=Text("Move layers from this stage to others.", "把该阶段的一些层移到其他阶段。"),
    )
}


@rule(
    "pipeline-flops",
    MESSAGES,
    whole_job=True,
    dimension="computation",
    computed=Text(
        "Compares the stated FLOPs of each pipeline stage with the mean of the stages by the formula of "
        "MindSpore Insight. A distance from a mean shows no cost, so no saving is claimed.",
        "按 MindSpore Insight 的公式，将各流水线阶段给出的浮点运算数与平均值比较。与平均值的差距不等于代"
        "价，因此不计节省。",
    ),
    shows=("cluster_advice", "rank_flops"),
)
def pipeline_flops(
    device_steps: pl.DataFrame, cluster_advice: pl.DataFrame, rank_flops: pl.DataFrame
) -> Iterator[Finding]:
    """State the pipeline stage with the most FLOPs (`pipeline_parallel_flops` of MindSpore Insight) if a profile
    with a device's step table states FLOPs."""
    known = rank_flops.filter(pl.col("found_by") == "stated").join(device_steps, on="rank", how="semi")
    for row in facts(cluster_advice, STAGE_FLOPS)[:1]:
        ranks = known.filter(pl.col("stage") == row["stage"])["rank"].to_list()
        if ranks:
            parameters = {"stage": row["stage"], "ranks": ranks, "flops": row["step_flops"]}
            yield stated("pipeline-flops", "more", row, ranks, **parameters)
