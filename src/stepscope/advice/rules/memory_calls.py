"""The device waits while its driver allocates or frees memory in training steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import BASIS, code_of, names_of, span_of, stopped, worst_call
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When allocating and freeing memory is worth a finding."""

    idle_ratio: float = limit(0.01, "of the mean step, idle", "chosen by us: less is not worth a finding")
    total_ns: int = limit(10_000_000, "ns in the mean step, although the device works", "the Ascend advisor's limit")
    full_ratio: float = limit(0.9, "of the memory, used or reserved at the peak", "as for `memory-capacity`")


_SUMMARY = Text(
    "{ranks:Ranks} {ranks:one allocates|allocate} and {ranks:one frees|free} device memory while training: "
    "{total_ns:ms} in {calls:number .0f} calls {per:each}, with the device idle for {idle_ns:ms} of {step_ns:whole} "
    "({ratio:percent})[ on rank {worst_rank}].",
    "{ranks:ranks} 在训练中申请和释放设备内存：{per:each} {calls:number .0f} 次调用，共 {total_ns:ms}，"
    "其间设备空闲 {idle_ns:ms}，占{step_ns:whole} 的 {ratio:percent}[（rank {worst_rank}）]。",
)
_CALLS = Text(
    "Mostly {names:list}. The framework keeps what it frees, so after warm-up it should not need the driver. ",
    "主要是 {names:list}。框架会保留已释放的内存，预热之后不应再需要驱动。",
)
_SMALLER: Choices = framed(
    Text(
        "Make the job smaller: a smaller micro-batch with gradient accumulation, activations recomputed in the "
        "backward pass, optimizer states and parameters sharded over ranks",
        "减小作业的占用：减小微批次并累积梯度、在反向传播中重计算激活、把优化器状态和参数切分到各 rank",
    ),
    {
        (PYTORCH, None): Text(" (FSDP, ZeRO).", "（如 fully_shard()）。"),
        (None, None): Text(".", "。"),
    },
)
_UNBROKEN: Choices = {
    (PYTORCH, NPU): Text(
        "Set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, keep sizes constant, and take torch.npu.empty_cache() "
        "out of the training loop.",
        "设置 PYTORCH_NPU_ALLOC_CONF=expandable_segments:True，保持大小不变，并从训练循环中去掉 "
        "torch.npu.empty_cache()。",
    ),
    (PYTORCH, CUDA): Text(
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, keep sizes constant, and take torch.cuda.empty_cache() "
        "out of the training loop.",
        "设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，保持大小不变，并从训练循环中去掉 "
        "torch.cuda.empty_cache()。",
    ),
    (PYTORCH, ROCM): Text(
        "Set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True, keep sizes constant, and take torch.cuda.empty_cache() "
        "out of the training loop.",
        "设置 PYTORCH_HIP_ALLOC_CONF=expandable_segments:True，保持大小不变，并从训练循环中去掉 "
        "torch.cuda.empty_cache()。",
    ),
    (PYTORCH, None): Text(
        "Keep sizes constant, and take calls of empty_cache() out of the training loop.",
        "保持大小不变，并从训练循环中去掉 empty_cache() 调用。",
    ),
    (MINDSPORE, NPU): Text(
        "Set MS_ALLOC_CONF=enable_vmm:true, keep sizes constant, and take mindspore.hal.empty_cache() out of the "
        "training loop.",
        "设置 MS_ALLOC_CONF=enable_vmm:true，保持大小不变，并从训练循环中去掉 mindspore.hal.empty_cache()。",
    ),
    (None, None): Text(
        "Keep sizes constant, and do not give cached memory back in the training loop.",
        "保持大小不变，不要在训练循环中归还缓存的内存。",
    ),
}
_FIRST = Text(
    " If that does not help, memory may be nearly full, which was not recorded: use a smaller micro-batch.",
    "若无效，可能是内存几乎用尽（未被记录）：减小微批次。",
)

MESSAGES = {
    "full": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "Memory is nearly full ({used_ratio:percent} at the peak), so it gives memory back to get some of another "
            "size.",
            "内存几乎用尽（峰值 {used_ratio:percent}），因此要归还内存才能得到其他大小的内存。",
        ),
        _SMALLER,
        basis=BASIS,
    ),
    "room": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "There is room ({used_ratio:percent} in use or reserved at the peak), so sizes that vary, or calls that "
            "empty the cache, are the usual reasons.",
            "内存仍有余量（峰值占用或预留 {used_ratio:percent}），通常是因为大小变化或清空缓存的调用。",
        ),
        _UNBROKEN,
        basis=BASIS,
    ),
    "unknown": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "Sizes that vary, calls that empty the cache, or memory that is nearly full are the usual reasons.",
            "通常是因为大小变化、清空缓存的调用，或内存几乎用尽。",
        ),
        framed(Text("", ""), _UNBROKEN, _FIRST),
        basis=BASIS,
    ),
}


@rule(
    "memory-calls",
    MESSAGES,
    claim=Claim(Turn.KNOWN_CALLS, "dispatch", yields=("dispatch",)),
    dimension="memory",
    computed=Text(
        "Sums the calls of the driver that allocate or free device memory in each rank's steps but the first, and the "
        "device's idle time during them. The saving is that idle time on the rank that loses most in each step.",
        "累加每个 rank 除首步外各步中申请或释放设备内存的驱动调用，以及其间设备的空闲时间。"
        "节省为每步中损失最多的 rank 的空闲时间。",
    ),
    shows=("memory_calls",),
    explains=("slow-rank:dispatch/device_memory", "long-step:dispatch", "idle-time:dispatch"),
)
def memory_calls(
    memory_calls: pl.DataFrame,
    breakdown: pl.DataFrame,
    memory_peak: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks whose host allocates or frees device memory in steps after the first for long."""
    idles = pl.col("idle_ns") >= limits.idle_ratio * pl.col("step_ns")
    busy = (pl.col("total_ns") >= limits.total_ns) & (pl.col("total_ns") >= limits.idle_ratio * pl.col("step_ns"))
    found = stopped(memory_calls, breakdown, idles | busy)
    if found is None or platform_of(ranks).device == CPU:
        return
    worst = worst_call(memory_calls, found.ranks)
    used = _used(memory_peak, found.ranks[0])
    yield Finding(
        rule="memory-calls",
        message="unknown" if used is None else "full" if used >= limits.full_ratio else "room",
        parameters={
            "total_ns": found.total_ns,
            "idle_ns": found.idle_ns,
            "step_ns": found.step_ns,
            "ratio": found.idle_ratio,
            "calls": found.calls,
            "names": names_of(memory_calls, found.ranks),
            **({} if used is None else {"used_ratio": used}),
        },
        **found.saving(per_of(breakdown)),
        evidence={
            "idle_ns": round(found.idle_ns),
            "total_ns": round(found.total_ns),
            "calls": found.calls,
            "used_ratio": used,
            "window_ns": round(found.step_ns),
        },
        code=code_of(memory_calls, found.ranks),
        span_ns=span_of(worst),
        span_rank=worst["rank"],
    ).on(found.ranks)


def _used(memory_peak: pl.DataFrame | None, rank: int) -> float | None:
    """The share of a rank's device memory that was used or reserved at the peak; None if unknown."""
    if memory_peak is None:
        return None
    known = memory_peak.filter((pl.col("rank") == rank) & pl.col("device").is_not_null())["used_ratio"].drop_nulls()
    return None if known.is_empty() else float(known.max())  # type: ignore[arg-type]
