"""A GPU says itself that it lowers its clock, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CUDA, Finding, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import rule
from stepscope.analysis.job.clock_limits import HEAT, HOST_POWER, POWER
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When lowered clocks are worth a finding."""

    share_ratio: float = limit(0.1, "of the samples in steps", "chosen by us: less is a moment")


_HOW_OFTEN = Text(
    "{ranks:Ranks} {ranks:one computes|compute} with a clock that is lowered ",
    "{ranks:ranks} 计算时频率被降低，原因是",
)
_SAMPLES = Text(
    ": in {share_ratio:percent} of the samples[ on rank {worst_rank}][, at {mean_mhz:number .0f} MHz instead of "
    "{free_mhz:number .0f} MHz otherwise].",
    "：占采样的 {share_ratio:percent}[（rank {worst_rank}）][，此时 {mean_mhz:number .0f} MHz，其他时候 "
    "{free_mhz:number .0f} MHz]。",
)
_SHOW = " (`nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE`)"


def _check(en: str, zh: str) -> Choices:
    """To check something, with the tool that shows it."""
    return {
        (None, CUDA): Text(f"{en}{_SHOW}.", f"{zh}（`nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE`）。"),
        (None, None): Text(f"{en}.", f"{zh}。"),
    }


_SAID = Text(
    "The device states why its clock is below what it asks for; kernels that computing limits take longer in "
    "proportion.",
    "设备说明了其频率低于所请求值的原因；受计算限制的核函数耗时按比例变长。",
)

MESSAGES = {
    HEAT: Message(
        summary=_HOW_OFTEN + Text("for heat", "过热") + _SAMPLES,
        cause=_SAID,
        action=_check(
            "Check fans, airflow and the temperature of the inlet of that host",
            "检查该主机的风扇、风道和进风温度",
        ),
    ),
    HOST_POWER: Message(
        summary=_HOW_OFTEN + Text("as its host asks for less power", "主机要求降低功耗") + _SAMPLES,
        cause=_SAID,
        action=_check(
            "Check the power supplies of that host, and the power cap of its management controller",
            "检查该主机的电源，以及其管理控制器的功耗上限",
        ),
    ),
    POWER: Message(
        summary=_HOW_OFTEN + Text("to keep within its power limit", "要保持在功耗上限以内") + _SAMPLES,
        cause=_SAID
        + Text(
            " Under heavy load that is usual of devices at their full limit.",
            "在满负荷下，达到功耗上限的设备通常如此。",
        ),
        action=_check(
            "Check that the limit is the one that the device is made for, and the same on all devices",
            "确认该上限是设备的额定值，且各设备一致",
        ),
    ),
}
"""Messages by the reason."""


@rule(
    "clock-throttling",
    MESSAGES,
    dimension="computation",
    computed=Text(
        "The share of the samples in steps in which the device states that it lowers its clock: for heat, for the "
        "power of its host, or for its own power limit, which is a remark only. What that costs is unknown.",
        "各步的采样中设备声明降低频率的比例：因过热、主机供电，或自身功耗上限（仅作提示）。其代价未知。",
    ),
    shows=("clock_limits",),
    explains=("slow-rank:computing", "slowed-steps:computing"),
)
def clock_throttling(
    clock_limits: pl.DataFrame, ranks: pl.LazyFrame | None = None, limits: Limits = Limits()
) -> Iterator[Finding]:
    """Report ranks whose devices say for long that they lower their clocks; no saving is claimed."""
    for reason in MESSAGES:
        found = clock_limits.filter((pl.col("reason") == reason) & (pl.col("share_ratio") >= limits.share_ratio))
        found = found.sort(-pl.col("share_ratio"), "rank")
        if found.is_empty() or platform_of(ranks, found["rank"].to_list()).device not in (CUDA, None):
            continue
        worst = found.row(0, named=True)
        slower = worst["free_mhz"] is not None and worst["mean_mhz"] is not None
        facts = {name: worst[name] if slower else None for name in ("mean_mhz", "free_mhz")}
        yield Finding(
            rule="clock-throttling",
            message=reason,
            parameters={"share_ratio": worst["share_ratio"], **facts},
            evidence={"share_ratio": worst["share_ratio"], **facts},
            least="low" if reason == POWER else "medium",
            most="low" if reason == POWER else "medium",
            confidence="certain",
        ).on(found["rank"])
