"""Operators that leave cores of the device idle, since their work is not divided evenly over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.device_work import NAMED, cost_of, operator_names, saving_of
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When idle cores are worth a finding."""

    cost_ratio: float = limit(0.005, "of the step, that even work could save", "chosen by us: less is not worth a look")


MESSAGES = {
    "uneven": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} {names:list} on {blocks} of {cores} cores[ (rank {worst_rank})]: "
            "{total_ns:ms} {per:each}, with {idle_ratio:percent} of the cores idle.",
            "{ranks:ranks} 的 {names:list} 只用 {cores} 个核中的 {blocks} 个[（rank {worst_rank}）]："
            "{per:each} {total_ns:ms}，{idle_ratio:percent} 的核空闲。",
        ),
        cause=Text(
            "The number of blocks is no multiple of the number of cores, so some cores have nothing to do while others "
            "work[; {others:count more operator does|more operators do} the same].",
            "块数不是核数的整数倍，部分核在其他核工作时空闲[；另有 {others} 个算子同样如此]。",
        ),
        action=Text(
            "Tune these operators for their shapes (AOE), or choose shapes (batch, sequence, hidden size) that divide "
            "evenly over the cores.",
            "针对这些形状对算子调优（`AOE`），或选择能均匀分到各核的形状（批大小、序列长度、隐藏层大小）。",
        ),
        basis=Text(
            "at most: if the work of these operators can be divided over all cores",
            "最多：前提是这些算子的工作可以分到所有核上",
        ),
    )
}

COMPUTED = Text(
    "Blocks are compared with the cores of their kind that the recording states of the device. The saving is at most "
    "what a replay of the job saves if these operators were shorter by the share of idle cores.",
    "把块数与记录中设备同类核的数量对比。节省最多为：这些算子按空闲核的比例缩短后，作业重放所节省的时间。",
)


@rule(
    "block-dim",
    MESSAGES,
    claim=Claim(Turn.OPERATORS, "computing", yields=("computing",)),
    dimension="computation",
    computed=COMPUTED,
    shows=("block_dims",),
)
def block_dim(
    block_dims: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    operator_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report operators whose number of blocks leaves cores of the device idle for long."""
    rows = block_dims.filter("uneven")
    if rows.is_empty():
        return
    cost = cost_of(rows.select("rank", cost_ns="idle_ns"), block_dims["rank"].unique().to_list(), breakdown)
    if breakdown is not None and cost.ratio < limits.cost_ratio:
        return
    worst = rows.filter(pl.col("rank") == cost.ranks[0]).sort(-pl.col("idle_ns"), "name")
    names, first = operator_names(worst, "idle_ns"), worst.row(0, named=True)
    total = cost_of(worst.select("rank", cost_ns="total_ns"), (), breakdown)
    saving = saving_of("blocks", operator_savings, cost)
    mixed = first["core"] == "MIX_AIC" and (first["block_dim"] or 0) % first["cores"] == 0
    idle_ratio = int(worst["idle_ns"].sum()) / max(int(worst["total_ns"].sum()), 1)
    yield Finding(
        rule="block-dim",
        message="uneven",
        parameters={
            "names": names[:NAMED],
            "blocks": first["mix_block_dim"] if mixed else first["block_dim"],
            "cores": first["cores"],
            "total_ns": total.cost_ns,
            "idle_ratio": idle_ratio,
            "others": len(names) - NAMED if len(names) > NAMED else None,
        },
        **saving.claimed(),
        saving_low_ns=0,
        where={"operators": names},
        evidence={"idle_ns": cost.cost_ns, "total_ns": total.cost_ns, "idle_ratio": idle_ratio},
        per=cost.per,
        most="medium",
        confidence="possible",
    ).on(cost.ranks)
