"""Memory grows from step to step; names the operators that keep it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import rule
from stepscope.advice.rules.memory_capacity import OF_WHAT, of_what
from stepscope.analysis.memory.memory_hints import GROWTH, UNRELEASED

NAMED = 5
"""How many operators with unreleased blocks are named."""

MESSAGES = {
    "growth": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one needs|need} {per_step_bytes:size} more memory",
            "{ranks:ranks} {per:each}多用 {per_step_bytes:size} 内存",
        )
        + OF_WHAT
        + Text(
            " in each {per:noun}[ on rank {worst_rank}]: {bytes:size} over {steps:windows}.",
            "[（rank {worst_rank}）]：{steps:windows}共 {bytes:size}。",
        ),
        cause=Text(
            "Something that each {per:noun} makes stays alive: what is in use between {per:nouns} rises.[ Never "
            "released were blocks of {operators:names}.]",
            "{per:each}都有内容没有释放：两次之间仍在使用的内存不断上升。[从未释放的内存块来自 {operators:names}。]",
        ),
        action=framed(
            Text("Find results that are kept ", "查找"),
            {
                (PYTORCH, None): Text(
                    "with their graph (a loss appended to a list without .item() or .detach())",
                    "连同计算图一起保留的结果（未经 .item() 或 .detach() 就加入列表的 loss）",
                ),
                (MINDSPORE, None): Text(
                    "as tensors (a loss appended to a list without .asnumpy())",
                    "以张量形式保留的结果（未经 .asnumpy() 就加入列表的 loss）",
                ),
                (None, None): Text("as tensors (a loss appended to a list)", "以张量形式保留的结果（加入列表的 loss）"),
            },
            Text(", caches without a limit, and hooks that collect tensors.", "、没有上限的缓存，以及收集张量的钩子。"),
        ),
    )
}


@rule(
    "memory-leak",
    MESSAGES,
    dimension="memory",
    computed=Text(
        "Looks for memory in use between steps that grows from step to step, and for blocks that are "
        "never released (limits: `memory_hints`). It ends training rather than slows it down, so no "
        "saving is claimed.",
        "查找步与步之间使用中的内存逐步增长，以及从未释放的内存块（限值见 `memory_hints`）。它会使训练中"
        "止而不是变慢，因此不计节省。",
    ),
    shows=("memory_hints",),
)
def memory_leak(memory_hints: pl.DataFrame) -> Iterator[Finding]:
    """Report memory that grows step by step, with the operators that leave blocks behind (limits: `memory_hints`)."""
    growing = memory_hints.filter(pl.col("kind") == GROWTH).sort("per_step_bytes", descending=True)
    kept = memory_hints.filter(pl.col("kind") == UNRELEASED).sort("bytes", descending=True)
    if growing.is_empty():
        return
    worst = growing.row(0, named=True)
    owners = kept["name"].drop_nulls().unique(maintain_order=True).to_list()
    yield Finding(
        rule="memory-leak",
        message="growth",
        parameters={
            **of_what(worst),
            **{name: worst[name] for name in ("per_step_bytes", "bytes", "steps")},
            "operators": owners[:NAMED],
        },
        least="medium",
        evidence={
            **{name: worst[name] for name in ("per_step_bytes", "bytes", "steps", "ratio", "peak_bytes")},
            "unreleased": kept.select("rank", "name", "blocks", "bytes", "steps").head(NAMED).to_dicts(),
        },
        where={"operators": owners} if owners else {},
    ).on(growing["rank"])
