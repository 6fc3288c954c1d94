"""Products of matrices and convolutions run beside the tensor cores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CUDA, PYTORCH, Confidence, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.device.tensor_cores import OTHER, TF32, TOO_OLD, UNALIGNED
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When kernels beside the tensor cores are worth a finding."""

    share_ratio: float = limit(0.1, "of the time of all kernels that compute", "chosen by us: less saves little")
    saving_ratio: float = limit(0.02, "of the step, that it saves", "chosen by us: smaller gains are not worth one")
    potential_ratio: float = limit(
        0.2,
        "of the step, in these kernels, even if it saves less",
        "chosen by us: it saves once the device is not idle",
    )


def _message(why: Text, action: Choices) -> Message:
    return Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one multiplies|multiply} matrices without the tensor cores: {share_ratio:percent} of "
            "the kernels' time[ on rank {worst_rank}], most in `{name}`[ of {operator}][, shapes {shapes}].",
            "{ranks:ranks} 的矩阵运算没有使用 Tensor Core：占 kernel 时间的 {share_ratio:percent}"
            "[（rank {worst_rank}）]，主要是 `{name}`[（`{operator}`）][，形状 {shapes}]。",
        ),
        cause=why,
        action=action,
        basis=Text(
            "from nothing, where kernels are too small to gain, to the ratio of the device's published peaks; half the "
            "bytes would halve their time",
            "下限为零（kernel 太小而没有收益），上限按设备公布的峰值之比；字节数减半时时间减半",
        ),
    )


MESSAGES = {
    TOO_OLD: _message(
        Text(
            "They compute in single precision, which the tensor cores of this device do not take: these take half "
            "precision.",
            "它们以单精度计算，而该设备的 Tensor Core 不支持单精度，只支持半精度。",
        ),
        {
            (PYTORCH, None): Text(
                "Run forward pass and loss under torch.autocast('cuda', dtype=torch.float16), with "
                "torch.amp.GradScaler, and pad sizes (batch, features, vocabulary) to multiples of 8. Check that "
                "training still converges.",
                "用 torch.autocast('cuda', dtype=torch.float16) 运行前向和损失计算，并配合 torch.amp.GradScaler，"
                "把大小（批次、特征、词表）补齐到 8 的倍数。请确认训练仍能收敛。",
            ),
            (None, None): Text(
                "Train in mixed precision (half precision with scaling of the loss), and pad sizes (batch, features, "
                "vocabulary) to multiples of 8. Check that training still converges.",
                "使用混合精度训练（半精度加损失缩放），把大小（批次、特征、词表）补齐到 8 的倍数。请确认训练仍能收敛。",
            ),
        },
    ),
    TF32: _message(
        Text(
            "They compute in single precision, and TF32, with which tensor cores take it, is off for these operators.",
            "它们以单精度计算，而 Tensor Core 处理单精度所需的 `TF32` 对这些算子没有开启。",
        ),
        {
            (PYTORCH, None): Text(
                "Train in bfloat16 (torch.autocast('cuda', dtype=torch.bfloat16)), or at least allow TF32: "
                "`torch.set_float32_matmul_precision('high')` for products, `torch.backends.cudnn.allow_tf32 = True` "
                "for convolutions. Check that training still converges.",
                "使用 `bfloat16` 训练（torch.autocast('cuda', dtype=torch.bfloat16)），或至少开启 `TF32`：矩阵乘法用 "
                "`torch.set_float32_matmul_precision('high')`，卷积用 `torch.backends.cudnn.allow_tf32 = True`。"
                "请确认训练仍能收敛。",
            ),
            (None, None): Text(
                "Train in bfloat16, or at least allow TF32. Check that training still converges.",
                "使用 `bfloat16` 训练，或至少开启 `TF32`。请确认训练仍能收敛。",
            ),
        },
    ),
    UNALIGNED: _message(
        Text(
            "Their sizes are no multiples of 8 in half precision, or of 4 in TF32; the library then falls back to "
            "kernels without tensor cores.",
            "它们的大小不是 8（半精度）或 4（`TF32`）的倍数，库因此退回到不使用 Tensor Core 的 kernel。",
        ),
        {
            (None, None): Text(
                "Pad these sizes (batch, sequence, features, heads, vocabulary, channels) to multiples of 8, better of "
                "64.",
                "把这些大小（批次、序列、特征、注意力头、词表、通道）补齐到 8 的倍数，最好是 64 的倍数。",
            )
        },
    ),
    OTHER: _message(
        Text(
            "Data type and sizes that were recorded do not explain it; the library chose kernels without tensor cores, "
            "e.g. for strides or a small size.",
            "记录中的数据类型和大小无法解释；库选择了不使用 Tensor Core 的 kernel，例如因为步幅或尺寸太小。",
        ),
        {
            (PYTORCH, None): Text(
                "Record with record_shapes=True, make the inputs of these operators contiguous and their sizes "
                "multiples of 8, and let cuDNN choose (`torch.backends.cudnn.benchmark = True`).",
                "用 record_shapes=True 记录，使这些算子的输入连续、大小为 8 的倍数，并让 `cuDNN` 自行选择"
                "（`torch.backends.cudnn.benchmark = True`）。",
            ),
            (None, None): Text(
                "Record the shapes of operators, and make the sizes of these multiples of 8.",
                "记录算子的形状，并使其大小为 8 的倍数。",
            ),
        },
    ),
}
"""Messages by the reason."""


@rule(
    "tensor-cores",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "computing", yields=("computing",)),
    dimension="computation",
    computed=Text(
        "Names of kernels say whether they run on tensor cores; data types and shapes of the operators that launched "
        "them say why not. The saving is what a replay of the job saves if these kernels take half the time; at most, "
        "if they are faster by the ratio of the device's published peaks.",
        "kernel 名称说明是否使用 Tensor Core，启动它们的算子的数据类型和形状说明原因。节省时间由重放得出：这些 kernel "
        "的时间减半；上限按设备公布的峰值之比。",
    ),
    shows=("tensor_cores",),
)
def tensor_cores(
    tensor_cores: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame,
    tensor_core_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report kernels that multiply matrices without tensor cores, on devices that have them.

    The saving is an estimate, and at most a medium one, since the recording does not say whether training converges in
    less precision.
    """
    step_ns, computing_ns = (median(breakdown, pl.col(name)) for name in ("window_ns", "computing_ns"))
    found = tensor_cores.drop_nulls("reason")
    shares = found.group_by("rank", "reason").agg(pl.col("share_ratio", "total_ns").sum())
    for reason in MESSAGES:
        slow = shares.filter(
            (pl.col("reason") == reason) & (pl.col("share_ratio") >= limits.share_ratio)
        ).sort("share_ratio", "rank", descending=[True, False])  # fmt: skip
        if slow.is_empty() or platform_of(ranks, slow["rank"].to_list()).device != CUDA:
            continue
        worst = slow.row(0, named=True)
        kernels = found.filter((pl.col("rank") == worst["rank"]) & (pl.col("reason") == reason))
        first = kernels.row(0, named=True)
        saving, high = _saving(tensor_core_savings, reason)
        little = saving is not None and high < limits.saving_ratio * step_ns
        if little and worst["share_ratio"] * computing_ns < limits.potential_ratio * step_ns:
            continue
        yield Finding(
            rule="tensor-cores",
            message=reason,
            parameters={
                "share_ratio": worst["share_ratio"],
                "name": _short(first["name"]),
                "operator": first["operator"],
                "shapes": _shapes(first["shapes"]),
            },
            saving_ns=saving or 0,
            saving_ratio=(saving or 0) / step_ns if step_ns else 0.0,
            saving_low_ns=0,
            saving_high_ns=high,
            replayed=True,
            per=per_of(breakdown),
            evidence={
                "reason": reason,
                "share_ratio": worst["share_ratio"],
                "kernel_ns": worst["total_ns"],
                "kernels": kernels["name"].unique(maintain_order=True).head(5).to_list(),
                "generation": first["generation"],
            },
            most="medium",
            confidence=_CONFIDENCE[reason],
            code=tuple(kernels["code"].drop_nulls().unique(maintain_order=True).head(3)),
        ).on(slow["rank"])


_CONFIDENCE: dict[str, Confidence] = {TOO_OLD: "certain", TF32: "certain", UNALIGNED: "likely", OTHER: "possible"}


def _saving(savings: pl.DataFrame | None, reason: str) -> tuple[int | None, int]:
    """What the replay saves, and at most; None if it is not known."""
    if savings is None:
        return None, 0
    rows = savings.filter((pl.col("reason") == reason) & (pl.col("error_ratio").abs() <= TRUSTED_RATIO))
    return rows.select("saving_ns", "saving_high_ns").row(0) if rows.height else (None, 0)


def _short(name: str) -> str:
    """A kernel's name without arguments, cut to what fits a sentence."""
    plain = name.removeprefix("void ").split("<")[0].split("(")[0]
    return plain if len(plain) <= 60 else f"{plain[:57]}..."


def _shapes(shapes: str | None) -> str | None:
    """The first shapes of an operator, without those of numbers."""
    if shapes is None:
        return None
    parts = [part.replace(" ", "").replace(",", "x") for part in re.findall(r"\[([\d, ]+)\]", shapes)]
    return ", ".join(f"({part})" for part in parts[:3]) or None
