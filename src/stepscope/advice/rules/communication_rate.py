"""Much of the ranks' time is communication that no computing hides."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.cluster_facts import by_formula, facts, stated
from stepscope.analysis.job.cluster_advice import BETWEEN, DATA, MODEL, SHARE, WITHIN

_SEE = Text(
    "See «`stepscope communication`» for the operators that cost most and how much of it is waiting.",
    "用 «`stepscope communication`» 查看最耗时的通信算子及其中的等待。",
)

MESSAGES = {
    DATA: Message(
        summary=Text(
            "In data parallelism, communication that no computing covers takes {off:number .2f}% of the time of "
            "{mean_of} ranks.",
            "数据并行中，没有被计算掩盖的通信占 {mean_of} 个 rank 时间的 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "Gradients are summed up when little is left to compute, or ranks wait for others.",
                "梯度求和时所剩计算不多，或者各 rank 在等待其他 rank。",
            )
        ),
        action=_SEE
        + Text(
            " Fuse gradients so that their sums start earlier, or accumulate them over micro-batches.",
            "调整梯度融合，使求和更早开始，或在微批次上累积梯度。",
        ),
    ),
    MODEL: Message(
        summary=Text(
            "In model parallelism, communication that no computing covers takes {off:number .2f}% of the time of "
            "{mean_of} ranks.",
            "模型并行中，没有被计算掩盖的通信占 {mean_of} 个 rank 时间的 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "Operators are split such that results must be gathered before the next one, or ranks wait for others.",
                "算子的切分方式要求在下一个算子之前汇总结果，或者各 rank 在等待其他 rank。",
            )
        ),
        action=_SEE
        + Text(
            " Choose a split that needs less communication, or fewer model-parallel ranks.",
            "选择通信更少的切分策略，或减少模型并行的 rank 数。",
        ),
    ),
    SHARE: Message(
        summary=Text(
            "Communication that no computing covers takes {off:number .2f}% of the time of {mean_of} ranks.",
            "没有被计算掩盖的通信占 {mean_of} 个 rank 时间的 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "How the job is parallel is unknown: ranks exchange much when little is left to compute, or wait for "
                "others.",
                "作业的并行方式未知：各 rank 在所剩计算不多时大量交换数据，或者在等待其他 rank。",
            )
        ),
        action=_SEE,
    ),
    BETWEEN: Message(
        summary=Text(
            "Between pipeline stages, receiving that no computing covers takes {off:number .2f}% of the time of "
            "{mean_of} ranks.",
            "流水线各阶段之间，没有被计算掩盖的接收占 {mean_of} 个 rank 时间的 {off:number .2f}%。",
        ),
        cause=by_formula(
            Text(
                "Stages wait for one another: they take unequal times, or the pipeline has few micro-batches.",
                "各阶段相互等待：耗时不均，或相对流水线而言微批次太少。",
            )
        ),
        action=Text(
            "See «`stepscope ranks`» for the times of the stages. Move layers from the longest stage to others, or use "
            "more micro-batches.",
            "用 «`stepscope ranks`» 查看各阶段耗时。把层从最长的阶段移到其他阶段，或增加微批次。",
        ),
    ),
    WITHIN: Message(
        summary=Text(
            "Within pipeline stage {stage}, collectives that no computing covers take {off:number .2f}% of the time "
            "of its {mean_of:count rank|ranks}[; other stages above the limit: {others:names}].",
            "流水线阶段 {stage} 内，没有被计算掩盖的集合通信占其 {mean_of} 个 rank 时间的 {off:number .2f}%"
            "[；其他超过界限的阶段：{others:names}]。",
        ),
        cause=by_formula(
            Text(
                "The stage is split such that its ranks must exchange much, or they wait for one another.",
                "该阶段的切分使各 rank 需要大量交换数据，或者它们相互等待。",
            )
        ),
        action=_SEE
        + Text(" Choose a split within the stage that needs less communication.", "在该阶段内选择通信更少的切分策略。"),
    ),
}
"""By `cluster_advice.advice`."""


@rule(
    "communication-rate",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "Divides communication that computing does not cover by computing plus that communication, as "
        "MindSpore Insight does, from the device's step table. How much of it could be covered is "
        "unknown, so no saving is claimed.",
        "根据设备的步骤表，按 MindSpore Insight 的方法，用未被计算掩盖的通信除以计算与该通信之和。其中多"
        "少可以被掩盖未知，因此不计节省。",
    ),
    shows=("cluster_advice", "rank_means"),
)
def communication_rate(
    device_steps: pl.DataFrame,
    cluster_advice: pl.DataFrame,
    rank_means: pl.DataFrame,
    breakdown: pl.DataFrame | None,
) -> Iterator[Finding]:
    """State the share of exposed communication, by how the job is parallel (`data_parallel_communication_rate` and its
    like of MindSpore Insight), if only step tables tell it: of a timeline, other rules do."""
    if breakdown is not None or device_steps.is_empty():
        return
    for kind in (DATA, MODEL, SHARE, BETWEEN):
        for row in facts(cluster_advice, kind):
            yield stated("communication-rate", kind, row)
    within = facts(cluster_advice, WITHIN)
    for worst in within[:1]:
        more = [str(row["stage"]) for row in within[1:]]
        ranks = rank_means.filter(pl.col("stage") == worst["stage"])["rank"]
        yield stated("communication-rate", WITHIN, worst, ranks, stage=worst["stage"], others=more or None)
