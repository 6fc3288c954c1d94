"""The device waits while its driver allocates or frees memory in training steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of, platform_of
from stepscope.advice.messages import Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.memory_calls_words import MESSAGES
from stepscope.advice.stopping import code_of, names_of, span_of, stopped, worst_call
from stepscope.analysis.memory.memory_calls import MAPPING
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When allocating and freeing memory is worth a finding."""

    idle_ratio: float = limit(0.01, "of the mean step, idle", "chosen by us: less is not worth a finding")
    total_ns: int = limit(10_000_000, "ns in the mean step, although the device works", "the Ascend advisor's limit")
    full_ratio: float = limit(0.9, "of the memory, used or reserved at the peak", "as for `memory-capacity`")


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
    names = names_of(memory_calls, found.ranks)
    yield Finding(
        rule="memory-calls",
        message=_message(used, memory_calls.filter(pl.col("rank") == found.ranks[0]), limits),
        parameters={
            "total_ns": found.total_ns,
            "idle_ns": found.idle_ns,
            "step_ns": found.step_ns,
            "ratio": found.idle_ratio,
            "calls": found.calls,
            "names": names,
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


def _message(used: float | None, calls: pl.DataFrame, limits: Limits) -> str:
    """By how full memory is; if it is not, by what a rank calls."""
    if used is not None and used >= limits.full_ratio:
        return "full"
    if calls["name"].str.contains(MAPPING).any():
        return "mapped"
    return "unknown" if used is None else "room"


def _used(memory_peak: pl.DataFrame | None, rank: int) -> float | None:
    """The share of a rank's device memory that was used or reserved at the peak; None if unknown."""
    if memory_peak is None:
        return None
    known = memory_peak.filter((pl.col("rank") == rank) & pl.col("device").is_not_null())["used_ratio"].drop_nulls()
    return None if known.is_empty() else float(known.max())  # type: ignore[arg-type]
