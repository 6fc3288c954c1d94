"""Fused operators could replace sequences of operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, NPU, Finding, platform_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When such sequences are worth a finding."""

    each_step: float = limit(1.0, "occurrences in the mean step", "chosen by us: less is start-up")


OPTIMIZER = "optimizer "
"""Begin of the pattern of an optimizer, followed by its name."""

ON_NPU = {
    "attention": "torch_npu.npu_fusion_attention",
    "scaled masked softmax": "torch_npu.npu_scaled_masked_softmax",
    "RMS normalisation": "torch_npu.npu_rms_norm",
    "rotary position embedding": "torch_npu.npu_rotary_mul",
    "SwiGLU": "torch_npu.npu_swiglu",
    "GeGLU": "torch_npu.npu_geglu",
    "Mish": "torch_npu.npu_mish",
    "GELU": "torch_npu.fast_gelu",
    "linear layer": "torch_npu.npu_linear",
    "addition and layer normalisation": "torch_npu.npu_add_layer_norm",
    "accumulated product": "torch_npu.npu_matmul_add_fp32",
    "group normalisation and SiLU": "torch_npu.npu_group_norm_silu",
    "transposition with a copy": "torch_npu.npu_confusion_transpose",
    "permutation of tokens to experts": "torch_npu.npu_moe_token_permute",
    "clipping of gradients": "clip_grad_norm_fused_ of the NpuFused optimizers",
}
"""What computes each pattern on Ascend devices."""

ELSEWHERE = {
    "attention": "F.scaled_dot_product_attention",
    "scaled masked softmax": "torch.compile",
    "RMS normalisation": "F.rms_norm",
    "rotary position embedding": "torch.compile",
    "SwiGLU": "torch.compile",
    "GeGLU": "torch.compile",
    "Mish": "F.mish",
    "GELU": "F.gelu",
    "linear layer": "F.linear",
    "clipping of gradients": "clip_grad_norm_(foreach=True)",
}
"""On other devices."""

OPTIMIZERS = ("Adadelta", "Adam", "AdamP", "AdamW", "BertAdam", "Lamb", "RMSprop", "RMSpropTF", "SGD")
"""Optimizers of which torch_npu.optim has fused ones."""

FUSED = ("Adam", "AdamW", "SGD")
"""Optimizers of PyTorch that take `fused=True` on any device. Adagrad takes it on CPUs only."""

MESSAGES = {
    "fuse": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} sequences of operators that fused operators could replace, "
            "{count:number .0f} {per:each}[ on rank {worst_rank}]: {operators:number .0f} operators, {host_ns:ms} on "
            "the host.",
            "{ranks:ranks} {per:each}有 {count:number .0f} 个算子序列可用融合算子代替[（rank {worst_rank}）]："
            "共 {operators:number .0f} 个算子，占主机 {host_ns:ms}。",
        ),
        cause=Text(
            "Each operator is dispatched by itself and moves its data through memory again: {sequences:names ; }.",
            "每个算子都单独下发，数据也要再次经过内存：{sequences:names ; }。",
        ),
        action=Text(
            "Try {functions:list}, and measure each: not every replacement is faster.",
            "尝试 {functions:list}，并逐个实测：并非每个替换都更快。",
        ),
    )
}


@rule(
    "replaceable-operators",
    MESSAGES,
    dimension="schedule",
    computed=Text(
        "Looks for sequences of the framework's operators that follow one another on a thread and compute what a fused "
        "one does, and for optimizers that update each parameter by itself; at least `each_step` times in the mean "
        "step. No saving is claimed: what the fused operators take is unknown.",
        "在同一线程上查找连续的、与某个融合算子计算相同的算子序列，以及逐个更新参数的优化器；"
        "平均每步至少出现 `each_step` 次。不计节省：融合算子的耗时未知。",
    ),
    shows=("replaceable_operators",),
)
def replaceable_operator(
    replaceable_operators: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Name fused operators of this framework and device for sequences that recur in every step."""
    platform = platform_of(ranks)
    if platform.framework == MINDSPORE:
        return
    steps = breakdown.group_by("rank").agg(steps=pl.len())
    totals = replaceable_operators.group_by("rank", "pattern").agg(pl.col("count", "operators", "host_ns").sum())
    often = totals.join(steps, on="rank").filter(pl.col("count") >= limits.each_step * pl.col("steps"))
    known = {pattern: found for pattern in often["pattern"].unique() if (found := _function(pattern, platform.device))}
    rows = often.filter(pl.col("pattern").is_in(sorted(known)))
    if rows.is_empty():
        return
    sums = rows.group_by("rank").agg(pl.col("count", "operators", "host_ns").sum() / pl.col("steps").first())
    slow = sums.sort("host_ns", "rank", descending=[True, False])
    worst = slow.row(0, named=True)
    own = replaceable_operators.filter((pl.col("rank") == worst["rank"]) & pl.col("pattern").is_in(sorted(known)))
    ordered = own.sort("host_ns", "pattern", "sequence", descending=[True, False, False])
    functions = [known[pattern] for pattern in ordered["pattern"].unique(maintain_order=True)]
    yield Finding(
        rule="replaceable-operators",
        message="fuse",
        parameters={
            **{name: worst[name] for name in ("count", "operators", "host_ns")},
            "sequences": ordered["sequence"].head(NAMED).to_list(),
            "functions": list(dict.fromkeys(functions)),
        },
        evidence={
            **{name: worst[name] for name in ("count", "operators", "host_ns")},
            "patterns": ordered["pattern"].unique(maintain_order=True).to_list(),
        },
        most="low",
        confidence="possible",
        code=tuple(ordered["place"].drop_nulls().unique(maintain_order=True).head(NAMED)),
    ).on(slow["rank"])


NAMED = 3
"""Sequences and lines of code that a finding names."""


def _function(pattern: str, device: str | None) -> str | None:
    """What computes a pattern on a kind of device; None if nothing known does."""
    if not pattern.startswith(OPTIMIZER):
        return (ON_NPU if device == NPU else ELSEWHERE).get(pattern)
    name = pattern.removeprefix(OPTIMIZER)
    if device == NPU:
        return f"torch_npu.optim.NpuFused{name}" if name in OPTIMIZERS else None
    if name in FUSED or (name == "Adagrad" and device == CPU):
        return f"{name}(fused=True)"
    return f"{name}(foreach=True)" if name == "Adagrad" else None
