"""Operators on the cores of an Ascend device that no pipe limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.device_work import NAMED, cost_of, operator_names, saving_of
from stepscope.analysis.device.operator_efficiency import decided
from stepscope.analysis.device.operator_work import KEYS
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When operators without a limit are worth a look."""

    cost_ratio: float = limit(0.005, "of the step, that a pipe at its limit would save", "chosen by us: less is noise")


MESSAGES = {
    "no_bound": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} {names:names} for {total_ns:ms} {per:each}[ (rank "
            "{worst_rank})] with no "
            "pipe of the cores busy: {space_ns:ms} of that could be saved at most.",
            "{ranks:ranks} 的 {names:names 、} {per:each}耗时 {total_ns:ms}[（rank {worst_rank}）]，"
            "但核的任何流水线都不忙：最多可节省 {space_ns:ms}。",
        ),
        cause=Text(
            "The busiest pipe is busy for {busiest:percent} of the time, so these operators wait: for one another's "
            "moves and results, for memory, or at their start, if they are short ({mean_ns:duration} a call).",
            "最忙的流水线只忙 {busiest:percent} 的时间，因此这些算子在等待：等待彼此的搬运和结果、等待内存，"
            "或者耗时太短（每次 {mean_ns:duration}）而受启动影响。",
        ),
        action=Text(
            "Tune these operators for their shapes (AOE), or replace them: fewer, larger or fused operators, and no "
            "conversions or transposes that another layout spares.",
            "针对这些形状对算子调优（`AOE`），或替换它们：更少、更大或融合的算子，"
            "并去掉换一种数据排布就能省去的转换和转置。",
        ),
        basis=Text(
            "at most: from nothing to what a pipe at its limit would save",
            "最多：从零到某条流水线达到上限时所能节省的时间",
        ),
    )
}

COMPUTED = Text(
    "Operators whose calls take long and of which no pipe is busy enough, without those that other findings about "
    "operators tell. The saving is at most what a replay of the job saves if their busiest pipe were at its limit.",
    "调用耗时长且没有任何流水线足够忙的算子，不含其他算子结论已指出的。节省最多为：最忙的流水线达到上限时，"
    "作业重放所节省的时间。",
)


@rule(
    "operator-bound",
    MESSAGES,
    claim=Claim(Turn.OPERATORS, "computing", yields=("computing",)),
    dimension="computation",
    computed=COMPUTED,
    shows=("operator_bounds",),
)
def operator_bound(
    operator_bounds: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    block_dims: pl.DataFrame | None = None,
    operator_efficiency: pl.DataFrame | None = None,
    operator_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report operators of which no pipe of the cores is busy enough to limit them, if that costs a share of a step."""
    rows = operator_bounds.filter("unbound")
    uneven = None if block_dims is None else block_dims.filter("uneven").select(KEYS)
    for told in (uneven, None if operator_efficiency is None else decided(operator_efficiency)):
        if told is not None:
            rows = rows.join(told, on=KEYS, how="anti", nulls_equal=True)
    if rows.is_empty():
        return
    cost = cost_of(rows.select("rank", cost_ns="space_ns"), operator_bounds["rank"].unique().to_list(), breakdown)
    if not cost.cost_ns or (breakdown is not None and cost.ratio < limits.cost_ratio):
        return
    worst = rows.filter(pl.col("rank") == cost.ranks[0]).sort(-pl.col("space_ns"), "name")
    names, first = operator_names(worst, "space_ns"), worst.row(0, named=True)
    total = cost_of(worst.select("rank", cost_ns="total_ns"), (), breakdown)
    saving = saving_of("bound", operator_savings, cost)
    yield Finding(
        rule="operator-bound",
        message="no_bound",
        parameters={
            "names": names[:NAMED],
            "total_ns": total.cost_ns,
            "space_ns": cost.cost_ns,
            "busiest": first["busiest_ratio"],
            "mean_ns": first["mean_ns"],
        },
        **saving.claimed(),
        saving_low_ns=0,
        where={"operators": names},
        evidence={"space_ns": cost.cost_ns, "total_ns": total.cost_ns, "busiest_ratio": first["busiest_ratio"]},
        per=cost.per,
        most="medium",
        confidence="possible",
    ).on(cost.ranks)
