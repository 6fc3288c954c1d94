"""Short operators recur in the same order: compiled or fused, they would be one."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Finding, per_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule

NAMED = 3
"""Sequences and lines of code that a finding names."""

_COMPILE = Text(
    "Try torch.compile on this part, which makes one kernel of element-wise operators and reductions, and measure it. "
    "Of an optimizer, try fused=True.",
    "对这部分尝试 torch.compile（它把逐元素算子和归约合成一个 kernel），并实测效果。若属于优化器，尝试 fused=True。",
)
_GRAPHS = Text(
    " Where the launches take the time, CUDA graphs spare them (torch.cuda.graph).",
    "若耗时在于下发，可用 CUDA 图省去（torch.cuda.graph）。",
)

MESSAGES = {
    "recur": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} the same sequences of short operators again and again, "
            "{count:number .0f} {per:each}[ on rank {worst_rank}]: {span_ns:ms} ({ratio:percent}), in {gaps_ns:ms} of "
            "which none of them runs.",
            "{ranks:ranks} 反复运行相同的短算子序列，{per:each} {count:number .0f} 次[（rank {worst_rank}）]："
            "共 {span_ns:ms}（{ratio:percent}），其中 {gaps_ns:ms} 没有任何一个在运行。",
        ),
        cause=Text(
            "Each of them is launched by itself and moves its data through memory again: {sequences:names ; }.",
            "每个算子都单独下发，数据也要再次经过内存：{sequences:names ; }。",
        ),
        action={
            (PYTORCH, CUDA): _COMPILE + _GRAPHS,
            (PYTORCH, ROCM): _COMPILE,
            (PYTORCH, NPU): Text(
                "Try a fused operator of torch_npu for this part, or torch.compile with the backend of torchair, and "
                "measure it.",
                "对这部分尝试 torch_npu 的融合算子，或以 torchair 为后端的 torch.compile，并实测效果。",
            ),
            (MINDSPORE, None): Text(
                'Try this part as a graph, @mindspore.jit(jit_level="O1"), which fuses operators, and measure it.',
                '尝试将这部分作为图运行：@mindspore.jit(jit_level="O1") 会融合算子，并实测效果。',
            ),
            (None, None): Text(
                "Try to compile this part or to write it as one operator, and measure it.",
                "尝试编译这部分，或写成一个算子，并实测效果。",
            ),
        },
    )
}


@rule(
    "fusible-operators",
    MESSAGES,
    dimension="computation",
    computed=Text(
        "Looks for the longest sequences of element-wise operators and reductions that recur on a stream in each step, "
        "each operator in one sequence only, between which the device is idle for most of the time, or in which "
        "counters show that it mostly moves data. No saving is claimed: what the fused operators take is unknown.",
        "查找同一流上每步重复出现的最长的逐元素算子和归约序列（每个算子只属于一个序列），其间设备大部分时间空闲，"
        "或计数器显示主要在搬运数据。不计节省：融合后的耗时未知。",
    ),
    shows=("fusible_operators",),
)
def fusible_operator(fusible_operators: pl.DataFrame, breakdown: pl.DataFrame) -> Iterator[Finding]:
    """Report sequences of short operators that recur, for the rank on which they take longest.

    A single window without steps is left out: what recurs in it may be start-up.
    """
    steps = breakdown.group_by("rank").agg(steps=pl.len(), window_ns=pl.col("window_ns").sum())
    is_one_window = per_of(breakdown) == "recording" and steps["steps"].max() == 1
    if is_one_window or fusible_operators.is_empty():
        return
    sums = (
        fusible_operators.group_by("rank")
        .agg(pl.col("count", "span_ns", "gaps_ns").sum())
        .join(steps, on="rank")
        .with_columns(ratio=pl.col("span_ns") / pl.col("window_ns"))
        .sort("ratio", "rank", descending=[True, False])
    )
    worst = sums.row(0, named=True)
    own = fusible_operators.filter(pl.col("rank") == worst["rank"])
    ordered = own.sort("span_ns", "sequence", "first_start_ns", descending=[True, False, False])
    words = ordered.select(pl.coalesce("operators", "sequence")).to_series().unique(maintain_order=True)
    each = {name: worst[name] / worst["steps"] for name in ("count", "span_ns", "gaps_ns")}
    yield Finding(
        rule="fusible-operators",
        message="recur",
        parameters={**each, "ratio": worst["ratio"], "sequences": words.head(NAMED).to_list()},
        evidence={
            **{name: round(each[name]) for name in ("span_ns", "gaps_ns")},
            "per_step": each["count"],
            "sequences": own.height,
        },
        most="low",
        confidence="possible",
        code=tuple(ordered["place"].drop_nulls().unique(maintain_order=True).head(NAMED)),
    ).on(sums["rank"])
