"""Graph breaks: torch.compile compiles a model in pieces, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When pieces of compiled code are worth a finding."""

    functions: int = limit(3, "compiled functions in a step", "chosen by us: model, loss and optimizer are one each")


_ACTION = Text(
    "Find the breaks with TORCH_LOGS=graph_breaks, or compile with `fullgraph=True`, which fails at the first one. "
    "Usual causes: `print`, `.item()` and conditions on tensors, calls of other libraries, breaks within loops and "
    "`with` blocks.",
    "用 TORCH_LOGS=graph_breaks 查找断点，或用 `fullgraph=True` 编译（遇到第一个断点即报错）。"
    "常见原因：`print`、`.item()`、以张量为条件的判断、调用其他库，以及循环和 `with` 语句块中的断点。",
)

MESSAGES = {
    "none": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} a compiled model without any compiled code: {count} of its forward "
            "passes[ on rank {worst_rank}] ran none.",
            "{ranks:ranks} 上被编译的模型没有运行任何编译后的代码："
            "它的 {count} 次前向[（rank {worst_rank}）]均未运行。",
        ),
        cause=Text(
            "A graph break where the function cannot be split, e.g. within a loop, makes the compiler give up the "
            "whole function; or the compiler is switched off.",
            "若断点位于无法拆分之处（例如循环内），编译器会放弃整个函数；或者编译器已被关闭。",
        ),
        action=_ACTION,
    ),
    "pieces": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} {functions} compiled functions {per:each}[ on rank {worst_rank}], with "
            "Python in between.",
            "{ranks:ranks} {per:each}运行 {functions} 个编译后的函数[（rank {worst_rank}）]，其间执行 Python。",
        ),
        cause=Text(
            "Either graph breaks split the model, or it is compiled in parts; nothing is fused across them, and each "
            "is entered anew.",
            "要么图断点把模型拆开，要么模型是分块编译的；各部分之间不会融合，且每次都要重新进入。",
        ),
        action=_ACTION,
    ),
}


@rule(
    "graph-breaks",
    MESSAGES,
    dimension="schedule",
    computed=Text(
        "Counts the compiled functions (`Torch-Compiled Region: function/version`) that run in a step, and forward "
        "passes of compiled modules in which none runs. How much faster whole graphs would be is unknown.",
        "统计每步运行的编译函数（`Torch-Compiled Region: function/version`），"
        "以及没有运行任何编译函数的已编译模块前向。整图编译能快多少未知。",
    ),
    shows=("compiled_regions",),
)
def graph_breaks(compiled_regions: pl.DataFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report compiled models that run in several pieces, or not compiled at all; no saving is claimed."""
    function = pl.col("function")
    without = compiled_regions.filter(function.is_null()).sort(-pl.col("count"), "rank")
    if without.height:
        yield Finding(
            rule="graph-breaks",
            message="none",
            parameters={"count": without["count"][0]},
            evidence={"passes": without["count"][0], "per_step": without["per_step"][0]},
        ).on(without["rank"])
    # those that run in each step
    known = compiled_regions.filter(function.is_not_null() & (pl.col("per_step") >= 1))
    pieces = known.group_by("rank").agg(functions=pl.len().cast(pl.Int64)).sort(-pl.col("functions"), "rank")
    many = pieces.filter(pl.col("functions") > limits.functions)
    if many.height:
        yield Finding(
            rule="graph-breaks",
            message="pieces",
            parameters={"functions": many["functions"][0]},
            evidence={"functions": many["functions"][0]},
            confidence="possible",
        ).on(many["rank"])
