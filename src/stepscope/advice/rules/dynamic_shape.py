"""Operators with dynamic shapes, which the device's software prepares or compiles again and again."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import MINDSPORE, NPU, PYTORCH, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.device_work import NAMED, cost_of, operator_names

MESSAGES = {
    "dynamic": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} {ratio:percent} of {ranks:one its|their} operator calls with dynamic "
            "shapes[ (rank {worst_rank})]: {names:names}[ and {more} more].",
            "{ranks:ranks} 有 {ratio:percent} 的算子调用为动态形状[（rank {worst_rank}）]：{names:names 、}[ "
            "等，另有 {more} 个]。",
        ),
        cause=Text(
            "Such operators are prepared on the host when they are called, and compiled anew for each new shape"
            "[: compiling takes {compile_ns:ms} {per:each}][; {shapes} different shapes were recorded].",
            "这类算子在调用时才在主机上准备，遇到新形状时会重新编译[：编译{per:each}耗时 {compile_ns:ms}]"
            "[；记录到 {shapes} 种不同的形状]。",
        ),
        action={
            (None, None): Text(
                "Keep shapes the same from step to step (padding, buckets), so that they are prepared once.",
                "让各步的形状保持一致（补齐、分桶），使其只准备一次。",
            ),
            (PYTORCH, NPU): Text(
                "At the top of the training script of every process, add "
                "`torch_npu.npu.set_compile_mode(jit_compile=False)` and "
                "`torch_npu.npu.config.allow_internal_format = False`; pad batches to few sizes.",
                "在每个进程的训练脚本开头加上 `torch_npu.npu.set_compile_mode(jit_compile=False)` 和 "
                "`torch_npu.npu.config.allow_internal_format = False`；把批次补齐到少数几种大小。",
            ),
            (MINDSPORE, None): Text(
                "Declare sizes that change as dynamic (Cell.set_inputs with None in the shape), or pad batches to few "
                "sizes.",
                "把变化的大小声明为动态（Cell.set_inputs，形状中用 None），或把批次补齐到少数几种大小。",
            ),
        },
    )
}

COMPUTED = Text(
    "Calls that the recording marks as dynamic are counted; calls without a mark are unknown, not dynamic. "
    "What dynamic "
    "shapes cost on the host is in the findings about compiling and idle time, so no saving is claimed here.",
    "统计记录中标为动态的调用；没有标记的为未知，不算动态。动态形状在主机上的代价见关于编译和空闲的结论，"
    "因此这里不给出节省。",
)


@rule(
    "dynamic-shape",
    MESSAGES,
    dimension="computation",
    computed=COMPUTED,
    shows=("dynamic_operators",),
    explains=("compile-time",),
)
def dynamic_shape(
    dynamic_operators: pl.DataFrame, breakdown: pl.DataFrame | None = None, compile_time: pl.DataFrame | None = None
) -> Iterator[Finding]:
    """Report operators with dynamic shapes, also a single one among static ones, with the time of compiling."""
    rows = dynamic_operators.filter(pl.col("dynamic") > 0)
    if rows.is_empty():
        return
    calls = dynamic_operators.group_by("rank").agg(pl.col("dynamic", "count").sum())
    found = calls.filter(pl.col("dynamic") > 0).with_columns(ratio=pl.col("dynamic") / pl.col("count"))
    ranks = found.sort(-pl.col("ratio"), "rank")["rank"].to_list()
    worst = rows.filter(pl.col("rank") == ranks[0])
    compiled = None
    if compile_time is not None:
        own = compile_time.filter(pl.col("rank").is_in(ranks) & pl.col("step").is_not_null())
        compiled = cost_of(own.select("rank", cost_ns="compile_ns"), (), breakdown) if own.height else None
    names, shapes = operator_names(worst, "dynamic_ns"), int(worst["shapes"].sum())
    yield Finding(
        rule="dynamic-shape",
        message="dynamic",
        parameters={
            "ratio": found.filter(pl.col("rank") == ranks[0])["ratio"].item(),
            "names": names[:NAMED],
            "more": len(names) - NAMED if len(names) > NAMED else None,
            "compile_ns": compiled.cost_ns if compiled is not None else None,
            "shapes": shapes or None,
        },
        where={"operators": names},
        evidence={
            "dynamic_calls": int(worst["dynamic"].sum()),
            "dynamic_ns": int(worst["dynamic_ns"].sum()),
            "compile_ns": compiled.cost_ns if compiled is not None else None,
        },
        confidence="certain",
    ).on(ranks)
