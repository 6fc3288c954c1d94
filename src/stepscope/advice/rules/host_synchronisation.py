"""The host waits for its GPU in the middle of steps, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.host.host_syncs import (
    CLIPPING,
    EXPLICIT,
    LOGGING,
    SCALING,
    SIZE,
    TO_DEVICE,
    TO_HOST,
    VALUE,
)
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waits of hosts are worth a finding."""

    cost_ratio: float = limit(0.02, "of the step, median rank", "chosen by us: less is not worth a finding")
    named_ratio: float = limit(
        0.1, "of that cost, for a place to be named", "chosen by us: only the largest few matter"
    )


_GENERAL = Text(
    "Take these calls out of the step, or make them every N steps.", "把这些调用移出训练步，或每隔若干步才做一次。"
)


def _message(why: Text, pytorch: Text, otherwise: Text = _GENERAL) -> Message:
    action: Choices = {(PYTORCH, None): pytorch, (None, None): otherwise}
    return Message(
        summary=Text(
            "{job_ranks:one The rank|Each of the two ranks|The median rank} waits for its device in "
            "{count:count call|calls} {per:each}, and the device then for its host: {cost_ns:ms} of "
            "{step_ns:whole} ({ratio:percent}), mostly in {places:list}.",
            "{job_ranks:one 该 rank |两个 rank 都|中位 rank }{per:each}在 {count} 次调用中等待设备，"
            "设备随后又等待主机：{step_ns:whole} 中有 {cost_ns:ms}（{ratio:percent}），主要在 {places:list}。",
        ),
        cause=why
        + Text(" Nothing is launched meanwhile, so the device runs out of work.", "其间不下发任何任务，设备因此空转。"),
        action=action,
        basis=Text(
            "at most the time that the device has no work after these waits, since launching takes time as well",
            "上限为这些等待之后设备没有任务的时间，因为下发本身也需要时间",
        ),
    )


MESSAGES = {
    CLIPPING: _message(
        Text(
            "Clipping gradients reads their norm back to the host.",
            "梯度裁剪把梯度范数读回主机。",
        ),
        Text(
            "Use torch.nn.utils.clip_grad_norm_(..., error_if_nonfinite=False, foreach=True), keep the norm that it "
            "returns on the device, and do not compare it or convert it by `float()` or `.item()` in each step.",
            "使用 torch.nn.utils.clip_grad_norm_(..., error_if_nonfinite=False, foreach=True)，让返回的范数留在设备上，"
            "不要每步都比较它或用 `float()`、`.item()` 转换。",
        ),
    ),
    SCALING: _message(
        Text(
            "The gradient scaler reads back whether gradients are infinite before it lets the optimizer update.",
            "梯度缩放器在优化器更新前要读回梯度是否为无穷大。",
        ),
        Text(
            "Train in bfloat16, which needs no scaler, or use a fused optimizer (`fused=True`), which checks on the "
            "device.",
            "使用 `bfloat16` 训练（不需要缩放器），或使用融合优化器（`fused=True`），它在设备上检查。",
        ),
    ),
    LOGGING: _message(
        Text("Logging or metrics read values of tensors.", "日志或指标读取张量的值。"),
        Text(
            "Collect losses and metrics on the device (`loss.detach()`) and read them every N steps, or copy them with "
            "`to('cpu', non_blocking=True)` and log them a step later.",
            "在设备上累积损失和指标（`loss.detach()`），每隔若干步读取一次，或用 `to('cpu', non_blocking=True)` 拷贝，"
            "下一步再记录。",
        ),
    ),
    VALUE: _message(
        Text(
            "It needs the value of a tensor (`.item()`, `float()`, `if tensor:`).",
            "它需要张量的值（`.item()`、`float()`、`if tensor:`）。",
        ),
        Text(
            "Keep the value on the device (torch.where in place of `if`, losses summed as tensors), or read it every N "
            "steps; numbers that the host needs anyway (splits, lengths) should be computed on the host.",
            "把值留在设备上（用 torch.where 代替 `if`，以张量累积损失），或每隔若干步读取一次；"
            "主机本来就需要的数值（划分、长度）应在主机上计算。",
        ),
    ),
    SIZE: _message(
        Text(
            "The size of a result depends on values on the device (selecting by a mask, `nonzero`, `unique`).",
            "结果的大小取决于设备上的值（按掩码选取、`nonzero`、`unique`）。",
        ),
        Text(
            "Use operations whose result has a fixed size: torch.where or a product with the mask in place of indexing "
            "by it, `repeat_interleave` with `output_size`.",
            "使用结果大小固定的操作：用 torch.where 或与掩码相乘代替按掩码索引，"
            "给 `repeat_interleave` 指定 `output_size`。",
        ),
    ),
    TO_HOST: _message(
        Text("It copies a tensor to pageable memory of the host.", "它把张量拷贝到主机的可分页内存。"),
        Text(
            "Copy into pinned memory with `non_blocking=True` and use it after an event of its stream, or copy every N "
            "steps.",
            "以 `non_blocking=True` 拷贝到锁页内存，在其流的事件之后再使用，或每隔若干步才拷贝。",
        ),
    ),
    TO_DEVICE: _message(
        Text(
            "It copies from pageable memory of the host, or waits for the copy.",
            "它从主机的可分页内存拷贝，或等待拷贝完成。",
        ),
        Text(
            "Pin the memory (`pin_memory=True` of the DataLoader, `tensor.pin_memory()`), copy with "
            "`non_blocking=True`, and create constants on the device in place of copying them in each step.",
            "使用锁页内存（DataLoader 的 `pin_memory=True`、`tensor.pin_memory()`），以 `non_blocking=True` 拷贝，"
            "常量直接在设备上创建，不要每步拷贝。",
        ),
    ),
    EXPLICIT: _message(
        Text("The program synchronises explicitly.", "程序显式地进行同步。"),
        Text(
            "Remove torch.cuda.synchronize() and waits for events from the step, e.g. those for timing: take the times "
            "of torch.cuda.Event(enable_timing=True) some steps later.",
            "从训练步中去掉 torch.cuda.synchronize() 和对事件的等待（例如用于计时的）："
            "改为在若干步之后读取 torch.cuda.Event(enable_timing=True) 的时间。",
        ),
    ),
}
"""Messages by what the costliest place waits for."""

_READS = (CLIPPING, SCALING, LOGGING)


@rule(
    "host-synchronisation",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "synchronisation", yields=("synchronisation", "dispatch")),
    dimension="schedule",
    computed=Text(
        "Waits are synchronising calls of the runtime and copies to pageable memory. Each costs what the device has no "
        "work from then until the first work launched after it, at most its own length; the saving is the median "
        "rank's sum, cut to what a replay of the job without such waits saves.",
        "等待指运行时的同步调用和到可分页内存的拷贝。每次的代价为从那时到其后下发的第一个任务开始之前设备没有任务的"
        "时间，不超过等待本身；节省时间为中位 rank 的总和，不超过去掉这些等待后重放作业所得的节省。",
    ),
    shows=("host_syncs",),
    explains=("idle-time",),
)
def host_synchronisation(
    host_syncs: pl.DataFrame, breakdown: pl.DataFrame, ranks: pl.LazyFrame, limits: Limits = Limits()
) -> Iterator[Finding]:
    """Report waits of hosts for their GPUs that leave the devices without work, with the places that call them.

    The median rank counts (of two, the one that loses less): ranks that wait for one another lose the same time.
    """
    if platform_of(ranks).framework != PYTORCH:
        return
    step_ns = median(breakdown, pl.col("window_ns"))
    known, count = breakdown["rank"].n_unique(), breakdown.group_by("rank").len()["len"].max()
    if not step_ns or not known or not isinstance(count, int):
        return
    lost = host_syncs.group_by("rank").agg(pl.col("cost_ns").sum()).sort("cost_ns", "rank")
    place = (known - 1) // 2 - (known - lost.height)
    if place < 0:
        return
    worst = lost.row(place, named=True)
    steps = breakdown.filter(pl.col("rank") == worst["rank"]).height or count
    cost_ns = worst["cost_ns"] / steps
    if cost_ns < limits.cost_ratio * step_ns:
        return
    own = host_syncs.filter(pl.col("rank") == worst["rank"])
    named = own.filter(pl.col("cost_ns") >= limits.named_ratio * worst["cost_ns"]).head(3)
    first = named.row(0, named=True)
    every = ranks.select(pl.len()).collect().item()
    yield Finding(
        rule="host-synchronisation",
        message=first["purpose"] if first["purpose"] in _READS else first["how"],
        parameters={
            "job_ranks": every,
            "count": max(round(own["count"].sum() / steps), 1),
            "cost_ns": cost_ns,
            "step_ns": step_ns,
            "ratio": cost_ns / step_ns,
            "places": [_place(row) for row in named.iter_rows(named=True)],
        },
        saving_ns=round(cost_ns),
        saving_ratio=cost_ns / step_ns,
        saving_low_ns=0,
        per=per_of(breakdown),
        where={"operators": named["operator"].drop_nulls().unique(maintain_order=True).to_list()},
        evidence={
            "cost_ns": round(cost_ns),
            "waited_ns": round(own["wait_ns"].sum() / steps),
            "rank": worst["rank"],
            "places": named.height,
        },
        code=tuple(named["code"].drop_nulls().unique(maintain_order=True)),
        span_ns=(first["start_ns"], first["start_ns"] + first["duration_ns"]),
        span_rank=worst["rank"],
    )


def _place(row: dict[str, Any]) -> str:
    """A place in words: the operator or kind of wait, and where it is called."""
    what = row["operator"] or row["range"] or row["how"]
    where = row["code"] or (row["range"] if row["operator"] else None)
    plain = None if where is None else where.strip("# ")
    return f"`{what}` ({plain})" if plain else f"`{what}`"
