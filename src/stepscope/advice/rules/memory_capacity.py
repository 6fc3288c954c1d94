"""Memory runs out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, PYTORCH, Finding
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import rule
from stepscope.analysis.memory.memory_hints import NEAR_CAPACITY

OF_WHAT = Text(
    "[ of component {component}][ of device {device}][ of graph {graph}]",
    "[（组件 {component}）][（设备 {device}）][（图 {graph}）]",
)
"""Which memory it is; empty if it is all memory."""

MESSAGES = {
    "near_capacity": Message(
        summary=Text("{ranks:Ranks} {ranks:one uses|use} nearly all memory", "{ranks:ranks} 几乎用尽内存")
        + OF_WHAT
        + Text(
            ": {peak_bytes:size} of {capacity_bytes:size} ({ratio:percent})[ on rank {worst_rank}].",
            "：{capacity_bytes:size} 中用了 {peak_bytes:size}（{ratio:percent}）[（rank {worst_rank}）]。",
        ),
        cause={
            (None, None): Text(
                "The next longer sequence or larger batch ends training; allocators also slow down here.",
                "再长一点的序列或再大一点的批次就会使训练终止；此时内存分配器也会变慢。",
            ),
            (None, CPU): Text(
                "The next longer sequence or larger batch makes the host swap, or ends training.",
                "再长一点的序列或再大一点的批次会使主机换页，或使训练终止。",
            ),
        },
        action=framed(
            Text("Recompute activations in the backward pass", "在反向传播中重计算激活"),
            {
                (PYTORCH, None): Text(
                    " (torch.utils.checkpoint), shard optimizer and parameters (torch.distributed.fsdp.fully_shard)",
                    "（torch.utils.checkpoint），切分优化器状态和参数（torch.distributed.fsdp.fully_shard）",
                ),
                (None, None): Text(", shard optimizer and parameters", "，切分优化器状态和参数"),
            },
            Text(
                ", take a smaller micro-batch and accumulate gradients. «`stepscope memory`» shows what is alive at "
                "the peak.",
                "，减小微批次并累积梯度。«`stepscope memory`» 显示峰值时存活的内容。",
            ),
        ),
    )
}


@rule(
    "memory-capacity",
    MESSAGES,
    dimension="memory",
    computed=Text(
        "Compares the peak of the memory in use with the capacity of the device (limits: "
        "`memory_hints`). It threatens the job rather than costs time, so no saving is claimed.",
        "将使用中内存的峰值与设备容量比较（限值见 `memory_hints`）。它威胁作业运行而不直接耗时，因此不计节省。",
    ),
    shows=("memory_hints", "memory_peak"),
)
def memory_capacity(memory_hints: pl.DataFrame) -> Iterator[Finding]:
    """Report ranks whose memory is nearly all in use at the peak (limits: `memory_hints`)."""
    rows = memory_hints.filter(pl.col("kind") == NEAR_CAPACITY).sort("ratio", descending=True)
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    yield Finding(
        rule="memory-capacity",
        message="near_capacity",
        parameters={
            **of_what(worst),
            **{name: worst[name] for name in ("peak_bytes", "capacity_bytes", "ratio")},
        },
        least="medium",
        evidence={name: worst[name] for name in ("ratio", "peak_bytes", "capacity_bytes", "device", "graph")},
        confidence="certain",
    ).on(rows["rank"])


def of_what(row: dict[str, Any]) -> dict[str, Any]:
    """The parameters of `OF_WHAT` for a row of `memory_hints`: only the first known one, as it includes the others."""
    names = ("component", "device", "graph")
    known = next((name for name in names if row[name] is not None), None)
    return {name: row[name] if name == known else None for name in names}
