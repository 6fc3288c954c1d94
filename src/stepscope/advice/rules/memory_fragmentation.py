"""The allocator holds far more memory than is ever in use."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.memory_capacity import OF_WHAT, of_what
from stepscope.analysis.memory.memory_hints import FRAGMENTATION

_SHAPES = Text("eep shapes the same from step to step (padding, buckets).", "让各步的形状保持一致（补齐、分桶）。")


def _set(en: str, zh: str) -> Text:
    """An action: set the allocator as given, and keep shapes the same."""
    return Text(f"Set {en}; k", f"设置 {zh}；") + _SHAPES


MESSAGES = {
    "reserved": Message(
        summary=Text("{ranks:Ranks} {ranks:one reserves|reserve} memory", "{ranks:ranks} 预留了从未使用的内存")
        + OF_WHAT
        + Text(
            " that is never in use: {bytes:size}, {ratio:percent} of what is reserved[ on rank {worst_rank}].",
            "：{bytes:size}，占预留量的 {ratio:percent}[（rank {worst_rank}）]。",
        ),
        cause=Text(
            "The allocator reserved {forced_bytes:size} more although as much was free: free memory lies in pieces "
            "between blocks in use, too small for what is asked for.",
            "在有同样多空闲内存时，分配器又预留了 {forced_bytes:size}：空闲内存散落在使用中的内存块之间，"
            "小于所申请的大小。",
        ),
        action={
            (PYTORCH, CUDA): _set(
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or max_split_size_mb",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 或 max_split_size_mb",
            ),
            (PYTORCH, ROCM): _set(
                "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512, or garbage_collection_threshold",
                "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512 或 garbage_collection_threshold",
            ),
            (PYTORCH, NPU): _set(
                "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, or max_split_size_mb",
                "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True 或 max_split_size_mb",
            ),
            (MINDSPORE, NPU): _set(
                "MS_ALLOC_CONF=enable_vmm:True, so that pieces are joined", "MS_ALLOC_CONF=enable_vmm:True 以合并碎片"
            ),
            (None, None): Text("K", "") + _SHAPES,
        },
    )
}


@rule(
    "memory-fragmentation",
    MESSAGES,
    dimension="memory",
    computed=Text(
        "Compares the memory that the allocator reserved with the most that was ever in use (limits: "
        "`memory_hints`). It costs memory rather than time, so no saving is claimed.",
        "将分配器保留的内存与曾经使用的最大值比较（限值见 `memory_hints`）。它占用内存而不直接耗时，因此不计节省。",
    ),
    shows=("memory_hints",),
)
def memory_fragmentation(memory_hints: pl.DataFrame) -> Iterator[Finding]:
    """Report reserved memory that was never in use (limits: `memory_hints`)."""
    rows = memory_hints.filter(pl.col("kind") == FRAGMENTATION).sort("bytes", descending=True)
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    yield Finding(
        rule="memory-fragmentation",
        message="reserved",
        parameters={
            **of_what(worst),
            **{name: worst[name] for name in ("bytes", "ratio", "forced_bytes")},
        },
        evidence={
            name: worst[name] for name in ("bytes", "ratio", "forced_bytes", "peak_bytes", "capacity_bytes", "device")
        },
        confidence="certain",
    ).on(rows["rank"])
