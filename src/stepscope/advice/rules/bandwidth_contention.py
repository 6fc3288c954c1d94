"""Communication that is slower while matrices are multiplied than alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CUDA, NPU, PYTORCH, ROCM, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.replayed import within_item
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.rank_lists import listed, listed_ranks
from stepscope.analysis.replay.call_savings import CONTENDED
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When calls beside matrix products are worth a finding."""

    sdma_bytes_per_s: float = limit(
        0.8 * 18e9, "bytes/s inside of a host", "the Ascend advisor: 80 % of the 18 GB/s that SDMA reaches"
    )
    calls: int = limit(3, "calls", "chosen by us: fewer show no typical rate")
    least_bytes: int = limit(16_000_000, "bytes of a call inside of a host", "smaller calls are slow by their latency")


_CALLS = Text(
    "{beside:count call|calls} ({operation}[ of {size_bytes:size}][, group {group}])",
    "{beside} 次通信（{operation}[，{size_bytes:size}][，通信组 {group}]）",
)
_MORE = Text("[ The same holds for {more:count more kind|more kinds} of calls.]", "[另有 {more} 类通信同样如此。]")
_TEST = Text(
    "Hiding communication behind computing mostly pays even so. Test with less of it at a time: ",
    "即便如此，用计算掩盖通信通常仍是值得的。可试着减少同时进行的量：",
)
_ACTION: Choices = {
    (PYTORCH, NPU): _TEST
    + Text(
        "Megatron's `--overlap-grad-reduce`, `--overlap-param-gather` and `--tp-comm-overlap` one by one, larger or "
        "fewer buckets, and a later start of what is not urgent.",
        "逐一开关 Megatron 的 `--overlap-grad-reduce`、`--overlap-param-gather`、`--tp-comm-overlap`，"
        "使用更大或更少的分桶，并推迟不紧急的通信。",
    ),
    **{
        (PYTORCH, device): _TEST
        + Text(
            "fewer channels for the library (NCCL_MAX_CTAS or NCCL_MAX_NCHANNELS), larger or fewer buckets, overlap "
            "only where the transfer is awaited late.",
            "减少通信库的通道（NCCL_MAX_CTAS 或 NCCL_MAX_NCHANNELS），使用更大或更少的分桶，只在较晚才需要结果处重叠。",
        )
        for device in (CUDA, ROCM)
    },
    (None, None): _TEST
    + Text(
        "larger or fewer fused calls, and a later start of what is not urgent.",
        "更大或更少的融合通信，并推迟不紧急的通信。",
    ),
}

MESSAGES = {
    "slower": Message(
        summary=_CALLS
        + Text(
            " {beside:one takes|take} {factor:number .2f}x as long beside matrix products as alone: {transmit_ns:ms} "
            "against {alone_ns:ms}.",
            "在矩阵乘同时进行时耗时是单独进行时的 {factor:number .2f} 倍：{transmit_ns:ms}，单独为 {alone_ns:ms}。",
        ),
        cause={
            **{
                (None, device): Text(
                    "Kernels of communication run on the same multiprocessors and share the memory's bandwidth.",
                    "通信 kernel 与计算共用同样的多处理器和内存带宽。",
                )
                + _MORE
                for device in (CUDA, ROCM)
            },
            (None, None): Text(
                "Both need the memory's bandwidth.[ SDMA reaches {rate:giga} GB/s meanwhile.]",
                "两者都需要内存带宽。[其间 SDMA 速率为 {rate:giga} GB/s。]",
            )
            + _MORE,
        },
        action=_ACTION,
        basis=Text(
            "from nothing, as without the overlap less would be hidden, to all that they take longer and computing "
            "awaits",
            "下限为零（不重叠则被掩盖的更少），上限为其多用且计算在等待的全部时间",
        ),
    ),
    "below": Message(
        summary=_CALLS
        + Text(
            " {beside:one reaches|reach} {rate:giga} GB/s over SDMA beside matrix products, less than {limit:giga} "
            "GB/s.",
            "在矩阵乘同时进行时 SDMA 速率为 {rate:giga} GB/s，低于 {limit:giga} GB/s。",
        ),
        cause=Text(
            "Computing may take the bandwidth.[ Alone they reach {alone_fast:giga} GB/s, but not reliably.][ But the "
            "same calls reach only {alone_rate:giga} GB/s alone too, so look "
            "at the links first.][ Fewer than {never} of "
            "the kind run alone, so whether they would be faster is unknown.]",
            "计算可能占用了带宽。[单独进行时可达 {alone_fast:giga} GB/s，但不稳定。][但同样的通信单独进行时也只有 "
            "{alone_rate:giga} GB/s，因此先检查链路。]"
            "[同类通信中单独进行的少于 {never} 次，因此是否会更快未知。]",
        )
        + _MORE,
        action=_ACTION,
    ),
}


@rule(
    "bandwidth-contention",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "Calls that transmit while a rank multiplies matrices are compared with calls of the same operation, size and "
        "members that do not; on an NPU also with 80 % of the 18 GB/s of SDMA. The saving is what they take longer, as "
        "far as computing awaits it, at most what a replay of the job without it saves.",
        "将矩阵乘同时进行的通信与操作、大小、成员相同但没有矩阵乘同时进行的通信比较；在 NPU 上还与 SDMA 18 GB/s 的 80% "
        "比较。节省为其多用且计算在等待的时间，且不超过去掉它后重放作业所得。",
    ),
    shows=("contended_calls",),
)
def bandwidth_contention(
    contended_calls: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    call_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report communication beside matrix products that is slower than alone, or below what SDMA reaches; as low and
    possible only, as hiding it is usually worth that."""
    step_ns = median(breakdown, pl.col("window_ns"))
    slower = contended_calls.filter("is_slower")
    if slower.height and step_ns:
        saving = contended_ns(slower)
        worst = slower.row(0, named=True)
        more = {"factor": worst["slowdown_factor"], **{name: worst[name] for name in ("transmit_ns", "alone_ns")}}
        found = _finding("slower", slower, breakdown, more, saving_ns=saving, saving_ratio=saving / step_ns)
        yield within_item(found, CONTENDED, call_savings)
        return
    is_large = pl.col("sdma_bytes") >= limits.least_bytes
    below = contended_calls.filter(
        is_large & (pl.col("sdma_bytes_per_s") < limits.sdma_bytes_per_s) & (pl.col("beside") >= limits.calls)
    ).sort("sdma_bytes_per_s", maintain_order=True)
    if below.height and platform_of(ranks).device == NPU:
        alone, least = below["alone_sdma_bytes_per_s"][0], limits.sdma_bytes_per_s
        more = {
            "limit": least,
            "alone_rate": alone if alone is not None and alone < least else None,
            "alone_fast": alone if alone is not None and alone >= least else None,
            "never": limits.calls if alone is None else None,
        }
        yield _finding("below", below, breakdown, more)


def _finding(
    message: str, rows: pl.DataFrame, breakdown: pl.DataFrame, more: dict[str, Any], **saving: float
) -> Finding:
    """A finding about these calls, the worst first, with further parameters."""
    worst: Mapping[str, Any] = rows.row(0, named=True)
    return Finding(
        rule="bandwidth-contention",
        message=message,
        parameters={
            **{name: worst[name] for name in ("beside", "operation", "size_bytes")},
            "group": worst["group_name"],
            "rate": worst["sdma_bytes_per_s"],
            "more": rows.height - 1 or None,
            **more,
        },
        saving_ns=round(saving.get("saving_ns", 0)),
        saving_ratio=saving.get("saving_ratio", 0.0),
        saving_low_ns=0,
        per=per_of(breakdown),
        where={
            "ranks": sorted({rank for text in rows["ranks"] for rank in listed(text)}),
            "operators": rows["operation"].unique(maintain_order=True).to_list(),
        },
        evidence={name: worst[name] for name in ("beside", "alone", "sdma_bytes_per_s", "excess_ns", "exposed_ns")},
        most="low",
        confidence="possible",
    )


def contended_ns(contended_calls: pl.DataFrame | None) -> int:
    """What computing awaits of the calls that are slower beside matrix products, on the rank with most of it."""
    if contended_calls is None:
        return 0
    of_ranks = contended_calls.filter("is_slower").select("exposed_ns", rank=listed_ranks()).explode("rank")
    return int(of_ranks.group_by("rank").agg(pl.col("exposed_ns").sum())["exposed_ns"].max() or 0)  # type: ignore[arg-type]
