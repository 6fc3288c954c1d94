"""Memory copies and fills that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When exposed memory operations are worth a finding."""

    exposed_ratio: float = limit(0.05, "of the step, with the device only copying", "chosen by us")
    mostly_ratio: float = limit(0.5, "of the time of all copies and fills, for a kind to be named", "most of it")


def _message(cause: Text, action: Text | Choices) -> Message:
    return Message(
        summary=Text(
            "The device only copies memory for {exposed_ns:ms} of {step_ns:whole} ({ratio:percent})[; "
            "{share_ratio:percent} of the time of all copies and fills is {kind}][, {rate:giga} GB/s].",
            "设备只在拷贝内存：{step_ns:whole} 中有 {exposed_ns:ms}（{ratio:percent}）[；所有拷贝和填充时间的 "
            "{share_ratio:percent} 是 `{kind}`][，{rate:giga} GB/s]。",
        ),
        cause=cause,
        action=action,
        basis=Text(
            "from nothing, if all of it must be moved just then, to all of this time",
            "若这些数据都必须在此时搬移则为零，上限为这段时间的全部",
        ),
    )


UNKNOWN, PAGEABLE, HOST, DEVICE, FILL = "exposed", "pageable", "host", "device", "fill"

MESSAGES = {
    UNKNOWN: _message(
        Text(
            "Copies run on the stream that computes, or from pageable host memory, which blocks.",
            "拷贝在计算流上运行，或来自可分页的主机内存，因而阻塞。",
        ),
        {
            (PYTORCH, None): Text(
                "Pin host memory (pin_memory=True), copy with non_blocking=True on a stream of its own, and fetch the "
                "next batch early.",
                "使用锁页内存（pin_memory=True），在单独的流上以 non_blocking=True 拷贝，并提前取下一批数据。",
            ),
            (MINDSPORE, None): (
                _SINK := Text(
                    "Let the data queue send batches to the device ahead of the step (data sinking), and keep copies "
                    "to the host (`.asnumpy()`, prints of tensors) out of the step.",
                    "让数据队列提前把批次送到设备（数据下沉），并避免在训练步中向主机拷贝（`.asnumpy()`、打印张量）。",
                )
            ),
            (None, None): (
                _AHEAD := Text(
                    "Copy on a stream of its own, and fetch the next batch early.",
                    "在单独的流上拷贝，并提前取下一批数据。",
                )
            ),
        },
    ),
    PAGEABLE: _message(
        Text(
            "Pageable memory of the host is first copied into a pinned buffer, at a fraction of the rate, and the host "
            "waits for it.",
            "主机的可分页内存要先拷贝到锁页缓冲区，速率只有几分之一，且主机要等待。",
        ),
        {
            (PYTORCH, None): Text(
                "Pin host memory (pin_memory=True of the DataLoader, else tensor.pin_memory()), copy with "
                "non_blocking=True, and fetch the next batch early.",
                "使用锁页内存（DataLoader 的 pin_memory=True，或 tensor.pin_memory()），以 non_blocking=True 拷贝，"
                "并提前取下一批数据。",
            ),
            (MINDSPORE, None): _SINK,
            (None, None): Text(
                "Copy from pinned memory on a stream of its own, and fetch the next batch early.",
                "从锁页内存在单独的流上拷贝，并提前取下一批数据。",
            ),
        },
    ),
    HOST: _message(
        Text(
            "Nothing computes while data moves between host and device: the copy is on the stream that computes, or "
            "begins only when its data is needed.",
            "数据在主机与设备之间移动时没有计算：拷贝在计算流上，或到需要数据时才开始。",
        ),
        {
            (PYTORCH, None): Text(
                "Copy the next batch on a stream of its own while this one computes (non_blocking=True from pinned "
                "memory), and move less: small types (uint8 images), converted on the device.",
                "在当前批次计算时，在单独的流上拷贝下一批（从锁页内存以 non_blocking=True），"
                "并减少数据量：用小的数据类型（`uint8` 图像），到设备上再转换。",
            ),
            (MINDSPORE, None): _SINK,
            (None, None): _AHEAD,
        },
    ),
    DEVICE: _message(
        Text(
            "Most copies move data within the device, so neither pinned memory nor another stream helps: they come "
            "from operators that put tensors together or lay them out anew.",
            "大部分拷贝在设备内部移动数据，锁页内存或其他流都无济于事：它们来自拼接张量或改变布局的算子。",
        ),
        {
            (PYTORCH, None): Text(
                "Find the operators that copy («`stepscope launches`»): avoid `.contiguous()`, `.clone()` and "
                "torch.cat within the step, and write results into place. With DistributedDataParallel, keep "
                "gradients in their buckets (gradient_as_bucket_view=True).",
                "找出产生拷贝的算子（«`stepscope launches`»）：避免在训练步中使用 `.contiguous()`、`.clone()` 和 "
                "torch.cat，把结果直接写到目标位置。使用 `DistributedDataParallel` 时让梯度留在通信桶中"
                "（gradient_as_bucket_view=True）。",
            ),
            (None, None): Text(
                "Find the operators that copy («`stepscope launches`»), keep one layout, and write results into place.",
                "找出产生拷贝的算子（«`stepscope launches`»），保持同一种布局，并把结果直接写到目标位置。",
            ),
        },
    ),
    FILL: _message(
        Text(
            "Most of it sets memory to a value, e.g. gradients to zero.", "大部分是把内存设为某个值，例如把梯度清零。"
        ),
        {
            (PYTORCH, None): Text(
                "Use torch.empty in place of torch.zeros where all of a tensor is written anyway. If gradients are set "
                "to zero (`set_to_none=False`, or PyTorch before 2.0), drop them instead: "
                "`zero_grad(set_to_none=True)`.",
                "对会被完整写入的张量用 torch.empty 代替 torch.zeros。若梯度被清零（`set_to_none=False`，或 PyTorch "
                "2.0 之前），改为丢弃：`zero_grad(set_to_none=True)`。",
            ),
            (None, None): Text(
                "Leave memory unset where all of it is written anyway.", "对会被完整写入的内存不做初始化。"
            ),
        },
    ),
}
"""Messages by what most copies are."""


@rule(
    "memory-copies",
    MESSAGES,
    claim=Claim(Turn.SEEN_IDLE, "memory"),
    dimension="memory",
    computed=Text(
        "Takes the time of the median step in which the device only copies or fills memory, hidden by "
        "neither computing nor communication. The saving is at most all of it, and what a replay of the job "
        "without it saves. The advice is for the kind that takes most of the time of all copies.",
        "取中位步中设备只在复制或填充内存、既没有被计算也没有被通信掩盖的时间。节省最多为其全部，且不超过去掉"
        "它后重放作业所得。建议针对占全部拷贝时间最多的那一类。",
    ),
    shows=("breakdown", "copies"),
)
def memory_copies(
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    copies: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report memory operations hidden by neither computing nor communication (median rank and step)."""
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed = median(breakdown, pl.col("memory_not_overlapped_ns"))
    ratio = exposed / step_ns if step_ns else 0.0
    if ratio >= limits.exposed_ratio and platform_of(ranks).device != CPU:
        message, most = _mostly(copies, limits)
        yield Finding(
            rule="memory-copies",
            message=message,
            parameters={"exposed_ns": exposed, "step_ns": step_ns, "ratio": ratio, **most},
            saving_ns=round(exposed),
            saving_ratio=ratio,
            saving_low_ns=0,
            evidence={"memory_not_overlapped_ns": round(exposed), "window_ns": round(step_ns), **most},
            per=per_of(breakdown),
            # what operators copy or fill may be needed; a batch can be copied ahead
            most="medium" if message in (DEVICE, FILL) else "high",
            confidence="possible" if message in (DEVICE, FILL) else "likely",
        )


def _mostly(copies: pl.DataFrame | None, limits: Limits) -> tuple[str, dict[str, Any]]:
    """What takes most of the time of all copies: the key of its message, and its share, kind and rate."""
    nothing = dict.fromkeys(("share_ratio", "kind", "rate"))
    total = 0 if copies is None else copies["total_ns"].sum()
    if copies is None or not total:
        return UNKNOWN, nothing
    kinds = copies.group_by("direction", "host_memory").agg(pl.col("total_ns", "size_bytes").sum())
    first = kinds.sort(-pl.col("total_ns"), "direction", "host_memory").row(0, named=True)
    share = first["total_ns"] / total
    message = _OF_DIRECTION.get(first["direction"])
    if share < limits.mostly_ratio or message is None:
        return UNKNOWN, nothing
    rate = first["size_bytes"] / first["total_ns"] * 1e9 if first["size_bytes"] else None
    memory = f" ({first['host_memory']} memory)" if first["host_memory"] else ""
    found = {"share_ratio": share, "kind": f"{first['direction']}{memory}", "rate": rate}
    return (PAGEABLE if first["host_memory"] == "pageable" else message), found


_OF_DIRECTION = {
    "fill": FILL,
    "host to device": HOST,
    "device to host": HOST,
    "device to device": DEVICE,
}
