"""Most of a GPU has nothing to do while its kernels run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import polars as pl

from stepscope.advice.finding import CUDA, ROCM, Finding, platform_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.idle_gaps import short_name
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When small kernels are worth a finding."""

    share_ratio: float = limit(
        0.5, "of the time of all kernels, in kernels with fewer blocks than multiprocessors", "chosen by us: most of it"
    )


MESSAGES = {
    "few": Message(
        summary=Text(
            "Kernels of {ranks:ranks} leave most of the device without work: for {share_ratio:percent} of their time, "
            "{idle_ratio:percent} of its multiprocessors have no block[ on rank {worst_rank}], most in {names:list}.",
            "{ranks:ranks} 的 kernel 使设备大部分空闲：在其 {share_ratio:percent} 的时间内，{idle_ratio:percent} 的"
            "多处理器没有线程块[（rank {worst_rank}）]，主要是 {names:list}。",
        ),
        cause=Text(
            "Each launch has fewer blocks than the device has multiprocessors: the tensors are too small for it.",
            "每次启动的线程块少于设备的多处理器：张量对该设备来说太小。",
        ),
        action=Text(
            "Give the device more at a time: a larger batch or micro-batch, operators on lists of tensors in place of "
            "single ones (foreach, fused), independent work on streams beside each other.",
            "让设备一次做更多：更大的批次或微批次，用对张量列表的算子代替单个算子（`foreach`、`fused`），"
            "在多个流上并行执行互不依赖的任务。",
        ),
    )
}


@rule(
    "low-occupancy",
    MESSAGES,
    dimension="computation",
    computed=Text(
        "Sums the time of kernels whose launch has fewer blocks than the device has multiprocessors. A larger batch "
        "would cost these little more time; what it saves in a step of the same batch is unknown.",
        "累加线程块数少于设备多处理器数的 kernel 的时间。更大的批次几乎不会使它们变慢；批次不变时每步能节省多少未知。",
    ),
    shows=("few_blocks",),
)
def low_occupancy(few_blocks: pl.DataFrame, ranks: pl.LazyFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report ranks most of whose kernels' time passes with few blocks; no saving is claimed."""
    idle_ns = (pl.col("idle_ratio") * pl.col("few_ns")).round().cast(pl.Int64)
    listed = few_blocks.group_by("rank").agg("share_ratio", idle_ratio=idle_ns.sum() / pl.col("few_ns").sum())
    shares = listed.with_columns(share_ratio=pl.Series([fsum(each) for each in listed["share_ratio"]]))
    small = shares.filter(pl.col("share_ratio") >= limits.share_ratio).sort(-pl.col("share_ratio"), "rank")
    if small.is_empty() or platform_of(ranks, small["rank"].to_list()).device not in (CUDA, ROCM):
        return
    worst = small.row(0, named=True)
    names = few_blocks.filter(pl.col("rank") == worst["rank"])["name"].head(3).to_list()
    yield Finding(
        rule="low-occupancy",
        message="few",
        parameters={
            "share_ratio": worst["share_ratio"],
            "idle_ratio": worst["idle_ratio"],
            "names": list(dict.fromkeys(f"`{short_name(name)}`" for name in names)),
        },
        evidence={"share_ratio": worst["share_ratio"], "idle_ratio": worst["idle_ratio"]},
        confidence="certain",
    ).on(small["rank"])
