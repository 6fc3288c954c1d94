"""Many small calls, whose time is latency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.bucketing import Limits as BucketingLimits
from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.replayed import within_item
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.rank_lists import listed, listed_ranks
from stepscope.analysis.replay.call_savings import LATENCY
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When small calls are worth a finding."""

    small_ratio: float = limit(0.2, "of the calls of a transport", "the Ascend advisor's limit")
    time_ratio: float = limit(0.05, "of the time of a transport", "chosen by us: the rest decides how long it takes")
    exposed_ratio: float = limit(0.01, "of the step", "chosen by us: below it nothing is gained")


_COUNTED = Text(
    "{small} of {calls:count transfer|transfers} over {transport} move less than {least:size} ({mean:size} on average)",
    "{transport} 的 {calls} 次传输中有 {small} 次小于 {least:size}（平均 {mean:size}）",
)
_LATENCY = Text(
    "{count:number .0f} {operation} calls {per:each}[ in group {group}] are small ({size:size} in the median): they "
    "take "
    "{latency_ns:ms} longer than their bytes would at the rate of large calls ({rate:giga} GB/s)",
    "{per:each}[通信组 {group} 中]有 {count:number .0f} 次较小的 {operation} 通信（中位大小 {size:size}）："
    "比按大块通信的速率（{rate:giga} GB/s）传输同样数据多用 {latency_ns:ms}",
)
_ACTION: Choices = {
    (PYTORCH, None): Text(
        "Send the same in fewer calls: a larger micro-batch or gradient accumulation, larger buckets (DDP "
        "`bucket_cap_mb`, DeepSpeed `reduce_bucket_size` and `allgather_bucket_size`, Megatron `--ddp-bucket-size`), "
        "fused buffers. If memory allows, ZeRO 2 or 1 (FSDP `SHARD_GRAD_OP`) instead of 3.",
        "用更少的通信传输同样的数据：更大的微批次或梯度累积，更大的分桶（DDP `bucket_cap_mb`，DeepSpeed "
        "`reduce_bucket_size` 与 `allgather_bucket_size`，Megatron `--ddp-bucket-size`），融合缓冲区。"
        "若内存允许，用 ZeRO 2 或 1（FSDP `SHARD_GRAD_OP`）代替 3。",
    ),
    (MINDSPORE, None): Text(
        "Send the same in fewer calls: a larger batch or gradient accumulation, and fused gradients "
        "(`comm_fusion` of `set_auto_parallel_context`). If memory allows, less sharding of the optimizer and the "
        "parameters.",
        "用更少的通信传输同样的数据：更大的批次或梯度累积，以及梯度融合"
        "（`set_auto_parallel_context` 的 `comm_fusion`）。若内存允许，减少优化器和参数的切分。",
    ),
    (None, None): Text(
        "Send the same in fewer calls: a larger batch, gradient accumulation, fused buffers, less sharding.",
        "用更少的通信传输同样的数据：更大的批次、梯度累积、融合缓冲区、减少切分。",
    ),
}

MESSAGES = {
    "counted": Message(
        summary=_COUNTED + Text(".", "。"),
        cause=Text(
            "They take {time_ratio:percent} of its time[ and reach {rate:giga} GB/s][, against {large:giga} GB/s of "
            "the "
            "larger ones]. Each transfer costs its latency, and small ones seldom reach the bandwidth.",
            "它们占其时间的 {time_ratio:percent}[，速率为 {rate:giga} GB/s][，较大的为 {large:giga} GB/s]。"
            "每次传输都有延迟，小块传输很少能达到带宽。",
        ),
        action=_ACTION,
    ),
    "latency": Message(
        summary=_LATENCY + Text(".", "。"),
        cause=Text(
            "Most of a small call is latency.[ {small} of {calls:count transfer|transfers} over {transport} move less "
            "than {least:size}.][ {more:count more kind|more kinds} of calls {more:one is|are} small, too.]",
            "小块通信的时间大多是延迟。[{transport} 的 {calls} 次传输中有 {small} 次小于 {least:size}。]"
            "[另有 {more} 类通信同样较小。]",
        ),
        action=_ACTION,
        basis=Text(
            "from nothing, if they cannot be merged, to what computing awaits of it",
            "若不能合并则为零，上限为其中计算所等待的时间",
        ),
    ),
}


@rule(
    "small-packets",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "The share of calls that move less than 16 MB over SDMA or 1 MB over RDMA; and what small calls take longer "
        "than "
        "their bytes at the rate of calls of at least four times the size (same operation, as many members and hosts). "
        "The saving is what computing awaits of that, at most what a replay of the job without it saves.",
        "SDMA 上小于 16 MB、RDMA 上小于 1 MB 的通信占比；以及小块通信比按至少四倍大小的通信（操作、成员数和主机数相"
        "同）的"
        "速率多用的时间。节省为其中计算所等待的部分，且不超过去掉它后重放作业所得。",
    ),
    shows=("transfer_sizes", "transmission"),
)
def small_packets(
    breakdown: pl.DataFrame,
    transfer_sizes: pl.DataFrame | None = None,
    transmission: pl.DataFrame | None = None,
    gradient_buckets: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    call_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report small calls: those whose latency computing awaits, else those that are many by count."""
    step_ns = median(breakdown, pl.col("window_ns"))
    if not step_ns:
        return
    counted = None if transfer_sizes is None else _counted(transfer_sizes, limits)
    facts: dict[str, Any] = dict.fromkeys(("small", "calls", "transport", "least"))
    found_on = [] if counted is None else counted["ranks"]
    if counted is not None:
        facts |= {name: counted[name] for name in facts}
    slow = None if platform_of(ranks).device == CPU else _latent(_without_buckets(transmission, gradient_buckets))
    exposed = 0 if slow is None else _of_worst_rank(slow)
    if slow is not None and exposed >= limits.exposed_ratio * step_ns:
        worst = slow.row(0, named=True)
        members = sorted({rank for text in slow["ranks"] for rank in listed(text)})
        found = Finding(
            rule="small-packets",
            message="latency",
            parameters={
                **facts,
                "count": worst["calls"],
                "operation": worst["operation"],
                "group": worst["group_name"],
                "size": worst["size_bytes"] if worst["size_bytes"] is not None else worst["sent_bytes"],
                "latency_ns": worst["latency_ns"],
                "rate": worst["large_bytes_per_s"],
                "more": slow.height - 1 or None,
            },
            saving_ns=exposed,
            saving_ratio=exposed / step_ns,
            saving_low_ns=0,
            per=per_of(breakdown),
            where={"ranks": members, "operators": slow["operation"].unique(maintain_order=True).to_list()},
            evidence={name: worst[name] for name in ("calls", "transmit_ns", "latency_ns", "exposed_latency_ns")},
            most="medium",
            confidence="possible",
        )
        yield within_item(found, LATENCY, call_savings)
    elif counted is not None:
        yield Finding(
            rule="small-packets",
            message="counted",
            parameters={**facts, **{name: counted[name] for name in ("mean", "time_ratio", "rate", "large")}},
            per=per_of(breakdown),
            where={"ranks": found_on},
            evidence={name: counted[name] for name in ("small", "calls", "time_ratio")},
            most="low",
            confidence="possible",
        )


def _counted(sizes: pl.DataFrame, limits: Limits) -> dict[str, Any] | None:
    """The transport on which small calls take most time, of those with many of them; None if there is none."""
    many = sizes.filter((pl.col("small_ratio") > limits.small_ratio) & (pl.col("small_time_ratio") > limits.time_ratio))
    sums = (
        many.group_by("transport")
        .agg(
            pl.col("rank").sort().alias("ranks"),
            pl.col("small", "calls", "small_ns", "total_ns").sum(),
            small_bytes=(pl.col("small_bytes") * pl.col("small")).sum(),
            large=pl.col("large_bytes_per_s").median(),
            least_bytes=pl.col("least_bytes").first(),
        )
        .sort(-pl.col("small_ns"), "transport")
    )
    if sums.is_empty():
        return None
    row = sums.row(0, named=True)
    return {
        **{name: row[name] for name in ("ranks", "small", "calls", "transport", "large")},
        "least": row["least_bytes"],
        "mean": row["small_bytes"] / max(row["small"], 1),
        "time_ratio": row["small_ns"] / max(row["total_ns"], 1),
        "rate": row["small_bytes"] / row["small_ns"] * 1e9 if row["small_ns"] else None,
    }


def _without_buckets(transmission: pl.DataFrame | None, buckets: pl.DataFrame | None) -> pl.DataFrame | None:
    """Kinds of calls without the many buckets of DistributedDataParallel, of which `data-parallel` tells."""
    if transmission is None or buckets is None or buckets["bucket"].n_unique() < BucketingLimits().small_buckets:
        return transmission
    sizes = buckets.select("group", "size_bytes", operation=pl.lit("all_reduce")).unique()
    return transmission.join(sizes, on=["group", "operation", "size_bytes"], how="anti", nulls_equal=True)


def _latent(transmission: pl.DataFrame | None) -> pl.DataFrame | None:
    """Kinds of calls of which most is latency, those that computing awaits longest first."""
    if transmission is None:
        return None
    rate = pl.coalesce("size_bytes", "sent_bytes") / pl.col("large_bytes_per_s") * 1e9
    small = transmission.filter((pl.col("exposed_latency_ns") > 0) & (pl.col("transmit_ns") >= 2 * rate))
    return small.sort(-pl.col("exposed_latency_ns"), maintain_order=True) if small.height else None


def _of_worst_rank(rows: pl.DataFrame) -> int:
    """What computing awaits of it in all groups of a rank, on the rank with most."""
    of_ranks = rows.select("exposed_latency_ns", rank=listed_ranks()).explode("rank")
    sums = of_ranks.group_by("rank").agg(pl.col("exposed_latency_ns").sum())
    return int(sums["exposed_latency_ns"].max() or 0)  # type: ignore[arg-type]
