"""Devices compute at a lower clock rate than they are made for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.analysis.rank_lists import accused
from stepscope.limits import limit

MESSAGES = {
    "low": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one computes|compute} at {mean_mhz} MHz on average[ (rank {worst_rank})]: "
            "{below_ratio:percent} below the {nominal_mhz} MHz of its AI cores.",
            "{ranks:ranks} 计算时平均频率为 {mean_mhz} MHz[（rank {worst_rank}）]，比 AI 核的额定频率 "
            "{nominal_mhz} MHz 低 {below_ratio:percent}。",
        ),
        cause=Text(
            "Heat or a power cap lowers the clock rate (it was sampled down to {lowest_mhz} MHz). Kernels that are "
            "bound by computing take longer in proportion; those bound by memory do not.",
            "过热或功耗上限会降低频率（采样到的最低值为 {lowest_mhz} MHz）。受计算限制的算子耗时按比例变长，受内存限制"
            "的不会。",
        ),
        action=Text(
            "Check temperature, cooling and power cap of the devices, and that no other job runs on them.",
            "检查设备的温度、散热和功耗上限，并确认没有其他任务在其上运行。",
        ),
    )
}


@dataclass(frozen=True)
class Limits:
    """From when on a lower clock rate is reported."""

    below_ratio: float = limit(0.05, "below the rate that the device states", "the Ascend advisor's limit")


@rule(
    "low-clock",
    MESSAGES,
    whole_job=True,
    dimension="computation",
    computed=Text(
        "Compares the mean clock rate of the AI cores, in the time in which they compute, with the rate "
        "that the recording states of the device. How much of the work is bound by the clock is unknown, "
        "so no saving is claimed.",
        "将 AI 核计算期间的平均频率与记录中设备的额定频率比较。多少工作受频率限制未知，因此不计节省。",
    ),
    shows=("frequencies", "rank_counters"),
)
def low_clock(
    frequencies: pl.DataFrame,
    rank_counters: pl.DataFrame,
    slow_ranks: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks whose AI cores compute at a lower clock rate than the recording states of the device, in the mean of
    the time in which they compute. Slow ranks are left out: the rule `slow-rank` says what they cost, and why."""
    others = frequencies.filter(~pl.col("rank").is_in(accused(slow_ranks)))
    known = others.drop_nulls("nominal_mhz").select("rank", "name", "nominal_mhz", "lowest_mhz")
    rows = known.join(rank_counters.select("rank", "name", "busy_mean"), on=["rank", "name"])
    below = 1 - pl.col("busy_mean") / pl.col("nominal_mhz")
    low = rows.with_columns(below=below).filter(pl.col("below") >= limits.below_ratio).sort(-pl.col("below"), "rank")
    if low.is_empty():
        return
    worst = low.row(0, named=True)
    figures = {name: round(worst[name]) for name in ("nominal_mhz", "lowest_mhz")}
    found = Finding(
        rule="low-clock",
        message="low",
        parameters={"mean_mhz": round(worst["busy_mean"]), "below_ratio": worst["below"], **figures},
        evidence={"mean_mhz": worst["busy_mean"], **figures},
    )
    yield found.on(low["rank"].to_list())
