"""Matrix products, attention and vector operators that leave room on the cores of an Ascend device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.device_work import NAMED, cost_of, operator_names, saving_of
from stepscope.analysis.device.operator_efficiency import UNITS
from stepscope.analysis.device.operator_work import KEYS
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When operators are worth a look."""

    cost_ratio: float = limit(
        0.005, "of the step, that better use could save", "chosen by us: less is not worth a look"
    )
    unaligned_ratio: float = limit(0.01, "of the step, in operators on unaligned sizes", "chosen by us")


_BASIS = Text(
    "at most: from nothing to what a pipe at its limit would save", "最多：从零到某条流水线达到上限时所能节省的时间"
)
_TUNE = Text(
    "Tune the operators for these shapes (AOE), and merge small ones into larger or fused operators.",
    "针对这些形状对算子调优（`AOE`），并把小算子合并为更大的或融合的算子。",
)


def _message(en: str, zh: str, sizes: Text, action: Text | Choices) -> Message:
    """Build the message about one kind of operators."""
    summary = Text(
        f"{{ranks:Ranks}} {{ranks:one leaves|leave}} room on the cores in {en}[ (rank {{worst_rank}})]: "
        "{names:names} take {total_ns:ms} {per:each}[, of which {space_ns:ms} could be saved at most].",
        f"{{ranks:ranks}} 的{zh}没有充分利用核[（rank {{worst_rank}}）]：{{names:names 、}} "
        "{per:each}耗时 {total_ns:ms}"
        "[，其中最多可节省 {space_ns:ms}]。",
    )
    cause = Text(
        "[No pipe of the cores is at its limit; the busiest is busy for {busiest:percent} of the time.]",
        "[核的任何流水线都没有达到上限；最忙的流水线忙 {busiest:percent} 的时间。]",
    )
    return Message(summary=summary, cause=cause + sizes, action=action, basis=_BASIS)


_NO_SIZES = Text("", "")
_SIZES = Text(
    "[ Sizes of {sizes:names} are no multiples of {multiple}, so cores move and compute parts of blocks.]",
    "[大小 {sizes:names 、} 不是 {multiple} 的整数倍，核要搬运和计算不完整的块。]",
)

MESSAGES = {
    "cube": _message(
        "matrix products",
        "矩阵乘",
        _SIZES,
        Text(
            "Choose hidden sizes, vocabulary and batch so that inner axes are multiples of 256 elements (pad "
            "them); then "
            "tune the operators for their shapes (AOE).",
            "选择隐藏层大小、词表和批大小，使内轴为 256 个元素的整数倍（补齐）；再针对形状对算子调优（`AOE`）。",
        ),
    ),
    "attention": _message(
        "fused attention",
        "融合注意力算子",
        _SIZES,
        {
            (None, None): Text(
                "Use heads and sequences that are multiples of 128, and the layout that the operator is fastest with.",
                "使用 128 整数倍的头大小和序列长度，以及该算子最快的数据排布。",
            ),
            (PYTORCH, None): Text(
                "Pad heads and sequences to multiples of 128, pack short sequences, and try the other input layouts of "
                "the attention call.",
                "把头大小和序列长度补齐到 128 的整数倍，拼接短序列，并尝试注意力调用的其他输入排布。",
            ),
            (MINDSPORE, None): Text(
                "Pad heads and sequences to multiples of 128, pack short sequences, and try the other "
                "`input_layout` of "
                "the attention call.",
                "把头大小和序列长度补齐到 128 的整数倍，拼接短序列，并尝试注意力调用的其他 `input_layout`。",
            ),
        },
    ),
    "vector": _message("vector operators", "向量算子", _NO_SIZES, _TUNE),
}

COMPUTED = Text(
    "Busy shares of the pipes are compared with the limits of matrix products, attention and vector operators, "
    "sizes with "
    "multiples that suit the cores. The saving is at most what a replay of the job saves if the pipe nearest "
    "to its limit "
    "reached it.",
    "把各流水线的忙碌比例与矩阵乘、注意力和向量算子的上限对比，把大小与适合核的倍数对比。"
    "节省最多为：最接近上限的流水线达到上限时，作业重放所节省的时间。",
)


@rule(
    "operator-efficiency",
    MESSAGES,
    claim=Claim(Turn.OPERATORS, "computing", yields=("computing",)),
    dimension="computation",
    computed=COMPUTED,
    shows=("operator_efficiency",),
)
def operator_efficiency(
    operator_efficiency: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    block_dims: pl.DataFrame | None = None,
    operator_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report matrix products, fused attention and vector operators with no pipe at its limit, or on unaligned sizes."""
    every = operator_efficiency["rank"].unique().to_list()
    judged = operator_efficiency
    if block_dims is not None:  # these are told by `block-dim`
        judged = judged.join(block_dims.filter("uneven").select(KEYS), on=KEYS, how="anti", nulls_equal=True)
    limited = pl.col("bound").fill_null(value=False)
    odd = (pl.col("unaligned").list.len() > 0).fill_null(value=False) & ~limited
    for unit in UNITS:
        rows = judged.filter((pl.col("unit") == unit) & (odd | (pl.col("space_ns") > 0)))
        if rows.is_empty():
            continue
        space = cost_of(rows.select("rank", cost_ns=pl.col("space_ns").fill_null(0)), every, breakdown)
        sizes = cost_of(rows.filter(odd).select("rank", cost_ns="total_ns"), (), breakdown)
        if breakdown is not None and space.ratio < limits.cost_ratio and sizes.ratio < limits.unaligned_ratio:
            continue
        worst = rows.filter(pl.col("rank") == space.ranks[0]).sort(-pl.col("space_ns").fill_null(0), "name")
        names = operator_names(worst, "total_ns")
        total = cost_of(worst.select("rank", cost_ns="total_ns"), (), breakdown)
        saving = saving_of(unit, operator_savings, space)
        pipes = ["mac_ratio", "vec_ratio", "mte2_ratio", "mte3_ratio", "fixpipe_ratio"]
        busiest = worst.filter(pl.col("counted") > 0).select(pl.max_horizontal(pipes)).to_series()
        unaligned = sorted({size for one in worst.filter(odd)["unaligned"].to_list() for size in one})
        parameters = {
            "names": names[:NAMED],
            "total_ns": total.cost_ns,
            "space_ns": space.cost_ns or None,
            "busiest": busiest[0] if len(busiest) and space.cost_ns else None,
        }
        if unit != "vector":
            shown = [str(size) for size in unaligned[: 2 * NAMED]]
            parameters |= {"sizes": shown or None, "multiple": worst["multiple"][0]}
        yield Finding(
            rule="operator-efficiency",
            message=unit,
            parameters=parameters,
            **saving.claimed(),
            saving_low_ns=0,
            where={"operators": names},
            evidence={"space_ns": space.cost_ns, "total_ns": total.cost_ns, "unaligned": unaligned},
            per=space.per,
            most="medium",
            confidence="possible",
        ).on(space.ranks)
