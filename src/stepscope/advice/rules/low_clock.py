"""Devices compute at a lower clock rate than they are made for, in all steps or in some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.device_work import NAMED, NONE, computes_late, cost_of, operator_names, saving_of
from stepscope.analysis.rank_lists import accused
from stepscope.limits import limit

_AT = Text(
    "{ranks:Ranks} {ranks:one computes|compute} at {mean_mhz} MHz on average[ in {slow_steps:steps}]"
    "[ (rank {worst_rank})]: {below_ratio:percent} below the {nominal_mhz} MHz ",
    "{ranks:ranks} [在{slow_steps:steps}]计算时平均频率为 {mean_mhz} MHz[（rank {worst_rank}）]，"
    "比 {nominal_mhz} MHz 低 {below_ratio:percent}：这是",
)
_LOST = Text(
    "[ Operators that lose most: {names:names}, {lost_ns:ms} {per:each}.]",
    "[损失最多的算子：{names:names 、}，{per:each} {lost_ns:ms}。]",
)
_CHECK = Text(
    "Check temperature, cooling and power cap of the devices, and that no other job runs on them.",
    "检查设备的温度、散热和功耗上限，并确认没有其他作业在其上运行。",
)
_BASIS = Text(
    "as operators that computing limits would be shorter at the full rate", "受计算限制的算子在满频率下会相应变短"
)

MESSAGES = {
    "low": Message(
        summary=_AT + Text("of its AI cores.", "其 AI 核的额定频率。"),
        cause=Text(
            "Heat or a power cap lowers the clock rate (it was sampled down to {lowest_mhz} MHz). Kernels that are "
            "bound by computing take longer in proportion; those bound by memory do not.",
            "过热或功耗上限会降低频率（采样到的最低值为 {lowest_mhz} MHz）。受计算限制的算子耗时按比例变长，受内存限制"
            "的不会。",
        )
        + _LOST,
        action=_CHECK,
        basis=_BASIS,
    ),
    "throttled": Message(
        summary=_AT + Text("at which it computes otherwise.", "它在其他时候的计算频率。"),
        cause=Text(
            "Heat or a power cap may have lowered the clock rate (it was sampled down to {lowest_mhz} MHz); the rate "
            "that the device is made for is not recorded.",
            "过热或功耗上限可能降低了频率（采样到的最低值为 {lowest_mhz} MHz）；记录中没有设备的额定频率。",
        )
        + _LOST,
        action=_CHECK,
        basis=_BASIS,
    ),
}

COMPUTED = Text(
    "The clock rate while each operator ran, mean by time, is compared with the rate that the recording states of the "
    "device, step by step; moments at the rate of idle cores do not count. The saving is what a replay of the "
    "job saves "
    "if operators that computing limits took less time in proportion.",
    "逐步将每个算子运行期间的平均频率与记录中设备的额定频率比较；处于空闲频率的时刻不计。"
    "节省为受计算限制的算子按比例缩短后，作业重放所节省的时间。",
)


@dataclass(frozen=True)
class Limits:
    """From when on a lower clock rate is reported."""

    below_ratio: float = limit(0.05, "below the rate that the device states", "the Ascend advisor's limit")
    unstated_ratio: float = limit(
        0.1, "below the usual rate of a device that states none", "chosen by us: boost clocks move by some per cent"
    )
    share_ratio: float = limit(0.01, "of a step, in operators at such a rate", "chosen by us: less is a moment")


@rule(
    "low-clock",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.STOPPED, "computing", yields=("computing",)),
    dimension="computation",
    computed=COMPUTED,
    shows=("throttled_operators", "frequencies"),
    explains=("slow-rank:computing", "slowed-steps:computing"),
)
def low_clock(
    frequencies: pl.DataFrame,
    rank_counters: pl.DataFrame,
    slow_ranks: pl.DataFrame | None = None,
    throttled_operators: pl.DataFrame | None = None,
    breakdown: pl.DataFrame | None = None,
    operator_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks whose operators run while the clock is below the rate that the recording states of the device, with
    the steps. Where no operators were recorded, the mean rate while they compute counts, of ranks that are not slow."""
    if throttled_operators is not None:
        for stated in (True, False):
            yield from _throttled(
                throttled_operators.filter(pl.col("stated") == stated), breakdown, slow_ranks, operator_savings, limits
            )
        known = set(throttled_operators["rank"])
    else:
        known = set()
    others = frequencies.filter(~pl.col("rank").is_in(sorted({*accused(slow_ranks), *known})))
    stated_rates = others.drop_nulls("nominal_mhz").select("rank", "name", "nominal_mhz", "lowest_mhz")
    rows = stated_rates.join(rank_counters.select("rank", "name", "busy_mean"), on=["rank", "name"])
    below = 1 - pl.col("busy_mean") / pl.col("nominal_mhz")
    low = rows.with_columns(below=below).filter(pl.col("below") >= limits.below_ratio).sort(-pl.col("below"), "rank")
    if throttled_operators is not None or low.is_empty():
        return
    worst = low.row(0, named=True)
    figures = {name: round(worst[name]) for name in ("nominal_mhz", "lowest_mhz")}
    found = Finding(
        rule="low-clock",
        message="low",
        parameters={
            "mean_mhz": round(worst["busy_mean"]),
            "below_ratio": worst["below"],
            **figures,
            **dict.fromkeys(("slow_steps", "names", "lost_ns")),
        },
        evidence={"mean_mhz": worst["busy_mean"], **figures},
        confidence="certain",
    )
    yield found.on(low["rank"].to_list())


def _throttled(
    operators: pl.DataFrame,
    breakdown: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    savings: pl.DataFrame | None,
    limits: Limits,
) -> Iterator[Finding]:
    """The finding about operators at a lower rate, of devices that state theirs or of those that do not."""
    stated = bool(operators["stated"].any())
    rows = operators.filter(pl.col("decreased_ratio") >= (limits.below_ratio if stated else limits.unstated_ratio))
    steps = rows.group_by("rank", "step").agg(pl.col("total_ns").sum())
    if breakdown is not None:
        steps = steps.join(breakdown.select("rank", "step", "window_ns"), on=["rank", "step"])
        steps = steps.filter(pl.col("total_ns") >= limits.share_ratio * pl.col("window_ns"))
    rows = rows.join(steps.select("rank", "step"), on=["rank", "step"], how="semi")
    if rows.is_empty():
        return
    lost = pl.col("lost_ns").fill_null(0)
    every = rows["rank"].unique().to_list() if breakdown is None else breakdown["rank"].unique().to_list()
    cost = cost_of(rows.select("rank", cost_ns=lost), every, breakdown)
    worst = rows.filter(pl.col("rank") == cost.ranks[0])
    weight = int(worst["total_ns"].sum()) or 1
    mean = float(worst.select((pl.col("mean_mhz") * pl.col("total_ns")).sum()).item()) / weight
    nominal = float(worst["nominal_mhz"][0])
    slow = sorted(set(worst["step"]))
    recorded = None if breakdown is None else breakdown.filter(pl.col("rank") == cost.ranks[0])["step"].n_unique()
    names = operator_names(worst.with_columns(lost_ns=lost), "lost_ns" if cost.cost_ns else "total_ns")
    saving = saving_of("clock", savings, cost) if stated else NONE
    late = stated and computes_late(cost.ranks, slow_ranks)
    lowest = round(float(worst.select(pl.col("min_mhz").min()).item()))
    yield Finding(
        rule="low-clock",
        message="low" if stated else "throttled",
        parameters={
            "mean_mhz": round(mean),
            "below_ratio": 1 - mean / nominal,
            "nominal_mhz": round(nominal),
            "lowest_mhz": lowest,
            "slow_steps": slow if recorded is not None and len(slow) < recorded else None,
            "names": names[:NAMED] if cost.cost_ns else None,
            "lost_ns": cost.cost_ns or None,
        },
        **saving.claimed(),
        where={"steps": slow, "operators": names},
        evidence={"mean_mhz": mean, "nominal_mhz": nominal, "lowest_mhz": lowest, "lost_ns": cost.cost_ns},
        per=cost.per,
        least=cost.severity if late else "low",
        most="high" if stated else "low",
        confidence="certain" if stated else "possible",
    ).on(cost.ranks)
