"""The host waits for its device after each launch, instead of launching ahead."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import NAMED, stopped
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waiting after launches is worth a finding."""

    wait_ratio: float = limit(0.5, "of the launches, followed by a wait or waiting themselves", "the Ascend advisor")
    launches: int = limit(20, "launches in the mean step", "chosen by us: of fewer, waits cost nothing")


VARIABLES = ("ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
"""Environment variables that make every launch wait."""

_SUMMARY = Text(
    "{ranks:Ranks} {ranks:one waits|wait} for the device after {wait_ratio:percent} of the launches[ on rank "
    "{worst_rank}]: {waits:number .0f} times {per:each}, for {wait_ns:ms}.",
    "{ranks:ranks} 在 {wait_ratio:percent} 的下发之后等待设备[（rank {worst_rank}）]："
    "{per:each} {waits:number .0f} 次，共 {wait_ns:ms}。",
)
_SO = Text(
    "So it cannot launch ahead: the device is idle for {idle_ns:ms} of {step_ns:whole} ({ratio:percent}), waiting for "
    "launches",
    "因此无法提前下发：设备因等待下发而空闲 {idle_ns:ms}，占{step_ns:whole} 的 {ratio:percent}",
)
_LIKELY: Choices = {
    (PYTORCH, NPU): Text(
        "Unset ASCEND_LAUNCH_BLOCKING (`unset ASCEND_LAUNCH_BLOCKING`): it makes every launch wait, and is for "
        "debugging. If it is not set, look for `.item()`, prints of tensors and torch.npu.synchronize() in the model.",
        "取消 ASCEND_LAUNCH_BLOCKING（`unset ASCEND_LAUNCH_BLOCKING`）：它使每次下发都等待，仅用于调试。若未设置，"
        "查找模型中的 `.item()`、打印张量和 torch.npu.synchronize()。",
    ),
    (PYTORCH, CUDA): Text(
        "Unset CUDA_LAUNCH_BLOCKING: it makes every launch wait, and is for debugging. If it is not set, look for "
        "`.item()`, prints of tensors and torch.cuda.synchronize() in the model.",
        "取消 CUDA_LAUNCH_BLOCKING：它使每次下发都等待，仅用于调试。若未设置，查找模型中的 `.item()`、打印张量和 "
        "torch.cuda.synchronize()。",
    ),
    (PYTORCH, ROCM): Text(
        "Unset HIP_LAUNCH_BLOCKING and AMD_SERIALIZE_KERNEL: they make every launch wait, and are for debugging. If "
        "they are not set, look for `.item()`, prints of tensors and torch.cuda.synchronize() in the model.",
        "取消 HIP_LAUNCH_BLOCKING 和 AMD_SERIALIZE_KERNEL：它们使每次下发都等待，仅用于调试。若未设置，"
        "查找模型中的 `.item()`、打印张量和 torch.cuda.synchronize()。",
    ),
    (MINDSPORE, None): Text(
        "Leave out mindspore.set_context(pynative_synchronize=True) and mindspore.runtime.launch_blocking(), which are "
        "for debugging; look for `.asnumpy()` and prints of tensors in the network.",
        "去掉 mindspore.set_context(pynative_synchronize=True) 和 mindspore.runtime.launch_blocking()，"
        "它们仅用于调试；查找网络中的 `.asnumpy()` 和打印张量。",
    ),
    (None, None): Text(
        "Turn off the setting that makes every launch wait, which is for debugging; look for values that are read back "
        "in the model.",
        "关闭使每次下发都等待的设置，它仅用于调试；查找模型中读回数值的代码。",
    ),
}
_BASIS = Text(
    "at most the waits, and the device's idle time, whichever is less: with launches ahead, each {per:noun} still "
    "takes as long as the rest of the host's work or the device's",
    "不超过等待时间与设备空闲时间中的较小者：提前下发后，每{per:noun}仍至少需要主机其余工作或设备工作的时间",
)

MESSAGES = {
    "waits": Message(_SUMMARY, _SO + Text("[ ({call})].", "[（{call}）]。"), _LIKELY, basis=_BASIS),
    "variable": Message(
        _SUMMARY,
        Text("{variable} is set, which makes every launch wait. ", "设置了 {variable}，它使每次下发都等待。")
        + _SO
        + Text("[ ({call})].", "[（{call}）]。"),
        framed(
            Text("Unset {variable}", "取消 {variable}"),
            Text(" (`unset {variable}`): it is for debugging.", "（`unset {variable}`）：它仅用于调试。"),
        ),
        basis=_BASIS,
    ),
}


@rule(
    "launch-wait",
    MESSAGES,
    claim=Claim(Turn.KNOWN_CALLS, "synchronisation", also=("dispatch",)),
    dimension="schedule",
    computed=Text(
        "Counts launches after which the host waits for its device before it launches again, and launches that return "
        "only after their kernel has ended, in all steps but the first. The saving is the lesser of these waits and of "
        "the device's idle time for launches, at most what a replay of the job without waits of the host saves.",
        "统计除首步外各步中，主机在再次下发之前等待设备的下发，以及 kernel 结束后才返回的下发。节省为这些等待与设备因"
        "等待下发而空闲的时间中的较小者，且不超过去掉主机等待后重放作业所得的节省。",
    ),
    shows=("launch_waits",),
    explains=("host-synchronisation", "slow-rank:dispatch", "idle-time:dispatch", "idle-time:synchronisation"),
)
def launch_wait(
    launch_waits: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks whose host waits for its device after most launches."""
    ratio = pl.max_horizontal(pl.col("followed") / pl.col("launches"), pl.col("blocking") / pl.col("long_kernels"))
    rows = launch_waits.with_columns(
        calls=pl.col("followed") + pl.col("blocking"),
        total_ns="wait_ns",
        idle_ns=pl.min_horizontal(pl.col("wait_ns"), pl.col("idle_ns").fill_null(0)),
        free_ns=pl.col("idle_ns").fill_null(0),
        wait_ratio=ratio.fill_nan(0.0),
    )
    means = rows.group_by("rank", maintain_order=True).agg(
        pl.col("wait_ratio").median(), pl.col("launches", "free_ns").mean()
    )
    slow = means.filter((pl.col("wait_ratio") >= limits.wait_ratio) & (pl.col("launches") >= limits.launches))
    found = stopped(rows, breakdown, pl.col("rank").is_in(slow["rank"].implode()))
    if found is None or platform_of(ranks).device == CPU:
        return
    worst = slow.filter(pl.col("rank") == found.ranks[0]).row(0, named=True)
    of_them = rows.filter(pl.col("rank").is_in(list(found.ranks)))
    longest = of_them.drop_nulls("longest_ns").sort("longest_ns", "rank", "step", descending=[True, False, False])
    variable = _variable(ranks, found.ranks)
    start = None if longest.is_empty() else int(longest["first_start_ns"][0])
    yield Finding(
        rule="launch-wait",
        message="waits" if variable is None else "variable",
        parameters={
            "wait_ratio": min(worst["wait_ratio"], 1.0),
            "waits": found.calls,
            "wait_ns": found.total_ns,
            "idle_ns": worst["free_ns"],
            "step_ns": found.step_ns,
            "ratio": worst["free_ns"] / found.step_ns if found.step_ns else 0.0,
            "call": None if longest.is_empty() else longest["name"][0],
            **({} if variable is None else {"variable": variable}),
        },
        **found.saving(per_of(breakdown)),
        evidence={
            "wait_ratio": worst["wait_ratio"],
            "waits": found.calls,
            "wait_ns": round(found.total_ns),
            "idle_ns": round(worst["free_ns"]),
            "launches": worst["launches"],
            "variable": variable,
        },
        confidence="likely" if variable is None else "certain",
        code=tuple(longest["place"].drop_nulls().unique(maintain_order=True).head(NAMED)),
        span_ns=None if start is None else (start, start + int(longest["longest_ns"][0])),
        span_rank=None if start is None else int(longest["rank"][0]),
    ).on(found.ranks)


def _variable(ranks: pl.LazyFrame | None, numbers: Sequence[int]) -> str | None:
    """The environment variable, set on any of some ranks, that makes launches wait."""
    if ranks is None or "environment" not in ranks.collect_schema():
        return None
    texts = ranks.filter(pl.col("rank").is_in(list(numbers))).select("environment").collect()["environment"]
    for text in texts.drop_nulls():
        known = json.loads(text)
        for name in VARIABLES:
            if isinstance(known, dict) and str(known.get(name) or "0") not in ("", "0"):
                return name
    return None
