"""The size of the buckets in which PyTorch's DistributedDataParallel sums gradients: too small, or too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, per_of, place
from stepscope.advice.messages import Message, Text
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit

MIB = 2**20
DEFAULT_BYTES = 25 * MIB
"""`bucket_cap_mb` of DistributedDataParallel if it is not set."""


@dataclass(frozen=True)
class Limits:
    """When the buckets of DistributedDataParallel are worth a finding."""

    small_buckets: int = limit(8, "small buckets in a backward pass", "chosen by us: fewer cost little")
    small_bucket_bytes: int = limit(
        1_048_576, "bytes of the median bucket, if its latency is unknown", "PyTorch's own first bucket is as large"
    )
    latency_ratio: float = limit(0.5, "of the median bucket's time, latency", "chosen by us: most of it")
    small_ratio: float = limit(
        0.01, "of the step, in small buckets that nothing covers", "as for `small-packets`: below it nothing is gained"
    )
    late_bytes_ratio: float = limit(0.5, "of the gradients, in one bucket", "chosen by us: most of them")
    late_left_ratio: float = limit(
        0.1, "of the backward pass left when that begins", "chosen by us: too little to cover it"
    )
    late_ratio: float = limit(
        0.03, "of the step, in late buckets that nothing covers", "chosen by us: less is not worth a finding"
    )
    rate_factor: float = limit(
        4.0, "between the sizes of all-reduces that tell latency and rate", "chosen by us: nearer ones tell neither"
    )


MESSAGES = {
    "small_buckets": Message(
        summary=Text(
            "DDP sums gradients in {buckets} small buckets ({size:size} in the median), of which nothing covers "
            "{exposed_ns:ms} {per:each} ({ratio:percent})[, waiting for other ranks {waiting:one included|}].",
            "DDP 用 {buckets} 个很小的分桶（中位大小 {size:size}）对梯度求和，{per:each}其中有 {exposed_ns:ms}"
            "（{ratio:percent}）未被掩盖[{waiting:one ，包括等待其他 rank|}]。",
        ),
        cause=Text(
            "A call of this size takes its latency, whatever it sends[: {sent_ns:ms}, though its bytes take only "
            "{bytes_ns:ms} at the rate of the largest all-reduce].",
            "这种大小的通信，耗时取决于延迟，而不是数据量[：{sent_ns:ms}，而按最大 all-reduce 的速率，"
            "这些数据只需 {bytes_ns:ms}]。",
        ),
        action=Text(
            "Raise `bucket_cap_mb` of DistributedDataParallel[, to {cap} or more] (25 if it is not set).",
            "增大 DistributedDataParallel 的 `bucket_cap_mb`[，至少 {cap}]（未设置时为 25）。",
        ),
        basis=Text(
            "from nothing, if computing covers as much less of larger buckets, to what fewer calls save at the latency "
            "and rate seen here",
            "若更大的分桶被计算掩盖得相应更少则为零，上限为按此处的延迟和速率减少通信次数所节省的时间",
        ),
    ),
    "late_bucket": Message(
        summary=Text(
            "DDP sums {share:percent} of the gradients ({size:size}) in a bucket that begins when the backward pass is "
            "nearly over; nothing covers {exposed_ns:ms} of its buckets {per:each} ({ratio:percent})"
            "[, waiting for other ranks {waiting:one included|}].",
            "DDP 把 {share:percent} 的梯度（{size:size}）放在一个反向几乎结束时才开始求和的分桶中；"
            "{per:each}各分桶共有 {exposed_ns:ms}（{ratio:percent}）未被掩盖[{waiting:one ，包括等待其他 rank|}]。",
        ),
        cause=Text(
            "A bucket waits for the last of its gradients, and there {buckets:one is|are} only "
            "{buckets:count bucket|buckets}: {left:percent} of the backward pass is left when the largest begins.",
            "分桶要等其中最后一个梯度，而总共只有 {buckets} 个分桶：最大的分桶开始时，反向只剩 {left:percent}。",
        ),
        action=Text(
            "Make buckets smaller, so that summing begins sooner: `bucket_cap_mb={cap}` in DistributedDataParallel. A "
            "single parameter of this size, e.g. an embedding, cannot be split this way: shard it (`fully_shard`).",
            "减小分桶以便更早开始求和：在 DistributedDataParallel 中设置 `bucket_cap_mb={cap}`。"
            "若是这么大的单个参数（例如嵌入），分桶无法拆分它：将其切分（`fully_shard`）。",
        ),
        basis=Text(
            "from nothing, if a single parameter fills the bucket, to what is saved if gradients become ready evenly "
            "over the backward pass",
            "若分桶中只有一个参数则为零，上限为梯度在反向中均匀就绪时的节省",
        ),
    ),
}


def bucketed(
    buckets: pl.DataFrame | None, transmission: pl.DataFrame | None, breakdown: pl.DataFrame, limits: Limits
) -> Iterator[Finding]:
    """Buckets that are too small or too large, on the median rank; nothing if their sizes were not recorded."""
    step_ns, steps = median(breakdown, pl.col("window_ns")), breakdown["step"].n_unique()
    if buckets is None or buckets.is_empty() or buckets["size_bytes"].has_nulls() or not step_ns or not steps:
        return
    bare = (pl.col("transmit_ns") + pl.col("unsplit_ns")).sum()
    of_rank = buckets.group_by("rank").agg(bare=bare).sort("bare", "rank")
    rank = of_rank["rank"][of_rank.height // 2]
    own = buckets.filter(pl.col("rank") == rank).sort("bucket")
    exposed = float(of_rank["bare"][of_rank.height // 2]) / steps
    passes = float(own["calls"].max() or 0) / steps  # type: ignore[arg-type]
    known = int(own["unsplit_ns"].sum()) == 0
    rate = _rate(own, transmission, limits) if known else None
    facts = {"exposed_ns": exposed, "ratio": exposed / step_ns, "buckets": own.height, "waiting": None if known else 1}
    small = _small(own, rate, limits)
    if small is not None and exposed >= limits.small_ratio * step_ns:
        saved = passes * _merged(own, rate)
        yield _finding("small_buckets", {**facts, **small}, min(saved, exposed), buckets, breakdown)
        return
    late = _late(own, limits)
    if late is not None and exposed >= limits.late_ratio * step_ns:
        cap = _cap(int(own["size_bytes"].sum()), rate)
        saved = max(exposed - passes * _left_bare(own, cap, rate), 0.0) if rate else 0.0
        yield _finding("late_bucket", {**facts, **late, "cap": ceil(cap / MIB)}, saved, buckets, breakdown)


Rate = tuple[float, float]
"""Latency of an all-reduce, ns, and ns for each byte."""


def _rate(own: pl.DataFrame, transmission: pl.DataFrame | None, limits: Limits) -> Rate | None:
    """Latency and rate by the smallest and largest all-reduce of the buckets' groups; no latency if all are alike."""
    rows = own.select("size_bytes", time="sent_ns").drop_nulls()
    if transmission is not None:
        others = transmission.filter(pl.col("operation") == "all_reduce").join(
            own.select("group").unique(), on="group", how="semi", nulls_equal=True
        )
        rows = pl.concat([rows, others.select("size_bytes", time="transmit_ns").drop_nulls()])
    rows = rows.filter((pl.col("size_bytes") > 0) & (pl.col("time") > 0)).sort("size_bytes", "time")
    if rows.is_empty():
        return None
    (least, short), (most, long) = rows.row(0), rows.row(-1)
    if most < limits.rate_factor * least:
        return 0.0, float(rows.select((pl.col("time") / pl.col("size_bytes")).median()).item())
    per_byte = (long - short) / (most - least)
    return (max(short - per_byte * least, 0.0), per_byte) if per_byte > 0 else None


def _small(own: pl.DataFrame, rate: Rate | None, limits: Limits) -> dict[str, Any] | None:
    """What is told of small buckets; None if they are not."""
    size = float(own["size_bytes"].median() or 0)  # type: ignore[arg-type]
    if own.height < limits.small_buckets:
        return None
    unknown = {"size": size, "sent_ns": None, "bytes_ns": None, "cap": None}
    if rate is None or not rate[0]:
        return unknown if size <= limits.small_bucket_bytes else None
    latency, per_byte = rate
    sent = latency + per_byte * size
    if latency < limits.latency_ratio * sent:
        return None
    # four times the bytes that take as long as the latency: four fifths of the rate
    return {"size": size, "sent_ns": sent, "bytes_ns": per_byte * size, "cap": ceil(4 * latency / per_byte / MIB)}


def _merged(own: pl.DataFrame, rate: Rate | None) -> float:
    """What a backward pass saves with buckets of the default size; 0 if that is unknown."""
    if rate is None or not rate[0]:
        return 0.0
    total = float(own["size_bytes"].sum())
    now = float(own["sent_ns"].sum())
    return max(now - ceil(total / DEFAULT_BYTES) * rate[0] - total * rate[1], 0.0)


def _late(own: pl.DataFrame, limits: Limits) -> dict[str, Any] | None:
    """What is told of a large bucket that begins late; None if there is none."""
    total = int(own["size_bytes"].sum())
    largest = own.sort("size_bytes", "bucket", descending=[True, False]).row(0, named=True)
    backward = largest["backward_ns"]
    if total <= 0 or backward <= 0 or largest["size_bytes"] < limits.late_bytes_ratio * total:
        return None
    left = largest["left_ns"] / backward
    if left > limits.late_left_ratio:
        return None
    return {"share": largest["size_bytes"] / total, "size": largest["size_bytes"], "left": left}


def _cap(total: int, rate: Rate | None) -> float:
    """A size of buckets of which there are at least four, that reach four fifths of the rate."""
    wanted = min(float(DEFAULT_BYTES), total / 4)
    return max(wanted, 4 * rate[0] / rate[1] if rate else 0.0, float(MIB))


def _left_bare(own: pl.DataFrame, cap: float, rate: Rate | None) -> float:
    """What nothing covers of buckets of that size, if gradients become ready evenly over the backward pass."""
    if rate is None:
        return 0.0
    total, backward = float(own["size_bytes"].sum()), float(own["backward_ns"].max() or 0)  # type: ignore[arg-type]
    count = ceil(total / cap)
    done = 0.0
    for bucket in range(1, count + 1):
        done = max(done, backward * bucket / count) + rate[0] + rate[1] * total / count
    return done - backward


def _finding(
    message: str, facts: dict[str, Any], saving_ns: float, buckets: pl.DataFrame, breakdown: pl.DataFrame
) -> Finding:
    step_ns = median(breakdown, pl.col("window_ns")) or 1.0
    return Finding(
        rule="data-parallel",
        message=message,
        parameters=facts,
        saving_ns=round(saving_ns),
        saving_ratio=saving_ns / step_ns,
        saving_low_ns=0,
        per=per_of(breakdown),
        where=place(buckets["rank"].unique().sort()),
        evidence={"exposed_ns": round(facts["exposed_ns"]), "buckets": facts["buckets"], "size_bytes": facts["size"]},
        most="medium",
        confidence="possible",
    )
