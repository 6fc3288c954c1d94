"""Batches reach the device too late: its queue is empty when a step needs one."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, NPU, Finding, Per, per_of, place, saved
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.input.input_queues import DATA_QUEUE, FIRST
from stepscope.analysis.input.input_stages import BOTTLENECK, OBTAINING, PROCESSING, TRANSMISSION, UNKNOWN

_LATE: Choices = {
    place: Text(
        "{ranks:Ranks} {ranks:one gets|get} batches too late: {empty} of {batches} batches ({empty_ratio:percent}) "
        "found the data queue" + en + " empty[ on rank {worst_rank}].",
        "{ranks:ranks} 得到批次过晚：{batches} 个批次中有 {empty} 个（{empty_ratio:percent}）遇到"
        + zh
        + "数据队列为空[（rank {worst_rank}）]。",
    )
    for place, en, zh in (((None, None), " on the device", "设备上的"), ((None, CPU), "", ""))
}
_COPIES = Text(
    "Check the copies to the device: batch size and data type, PCIe load, other work of the sending thread",
    "检查向设备的拷贝：批次大小和数据类型、PCIe 负载、发送线程的其他工作",
)
_HANDING = Text(
    "Check batch size, data type and other work of the thread that hands batches over",
    "检查批次大小、数据类型以及移交批次的线程的其他工作",
)
_TENSORS = Text(
    "Take fewer and larger tensors in a batch, and check what else runs ", "让每个批次包含更少、更大的张量，并检查"
)

MESSAGES = {
    TRANSMISSION: Message(
        summary=_LATE,
        cause={
            (None, None): Text(
                "The host had batches ready, so sending them to the device is the slow part.",
                "主机已备好批次，因此慢的是把它们送到设备。",
            ),
            (None, CPU): Text(
                "Batches were ready, so handing them over to training is the slow part.",
                "批次已备好，因此慢的是把它们移交给训练。",
            ),
        },
        action={
            (MINDSPORE, None): _COPIES
            + Text("; raise prefetch_size, or sink several steps at once.", "；增大 prefetch_size，或一次下沉多步。"),
            (MINDSPORE, CPU): _HANDING + Text("; raise prefetch_size.", "；增大 prefetch_size。"),
            (None, CPU): _HANDING + Text(".", "。"),
            (None, None): _COPIES + Text(".", "。"),
        },
    ),
    UNKNOWN: Message(
        summary=_LATE,
        cause=Text(
            "Either the dataset pipeline or the sending is slow; the queue on the host was not recorded.",
            "慢的是数据集流水线或者发送；主机上的队列没有被记录。",
        ),
        action={
            (MINDSPORE, None): Text(
                "Record the dataset pipeline too (data_process=True), and see which of the two is slow.",
                "同时记录数据集流水线（data_process=True），查看两者中哪个慢。",
            ),
            (None, None): Text(
                "Record the making of batches too, and see which of the two is slow.",
                "同时记录批次的生成，查看两者中哪个慢。",
            ),
        },
    ),
    OBTAINING: Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one is|are} slow to take batches that are ready: {ratio:percent} of the time between "
            "two of them.",
            "{ranks:ranks} 取用已就绪的批次较慢：占相邻两批间隔的 {ratio:percent}。",
        ),
        cause=Text(
            "The queue was never empty, so the operator that takes from it is slow itself.",
            "队列从未为空，因此取数据的算子本身较慢。",
        ),
        action={
            (None, None): _TENSORS
            + Text("at the same time as the operator that takes it.", "与取数据的算子同时运行的其他工作。"),
            (None, NPU): _TENSORS
            + Text("on the device's own CPU (AI CPU).", "设备自身的 CPU（AI CPU）上还有什么在运行。"),
        },
    ),
}
"""Messages by the slow stage of the input."""


@rule(
    "data-queue",
    MESSAGES,
    claim=Claim(Turn.DEVICE_QUEUE, "data_loading", yields=("data_loading",)),
    dimension="dataloader",
    computed=Text(
        "Counts the batches that found the device's data queue empty while the host's queue had batches, "
        "and ranks that are slow to take a batch that is ready. The saving is the mean time of taking a "
        "batch from the empty queue (without the first batch) on the rank that waited most.",
        "统计主机队列有数据而设备数据队列为空的批次，以及取出已就绪批次很慢的 rank。节省取等待最多的 rank"
        " 从空队列取批次的平均时间（不含首个批次）。",
    ),
    shows=("input_stages", "input_queues"),
    explains=("idle-time:data_loading", "slow-rank:data_loading", "iteration-interval"),
)
def data_queue(
    input_stages: pl.DataFrame, input_batches: pl.DataFrame, steps: pl.LazyFrame | None = None
) -> Iterator[Finding]:
    """Report ranks whose data queue was empty although the host's was not, and ranks that are slow to take batches.

    A data queue that is empty because the pipeline is slow is left to `host-queue`. The saving is the time of taking a
    batch from an empty queue, as the mean over all batches but the first (which cannot be ready), on the rank that
    waited most; the sum if the recording has no steps.
    """
    per = per_of(steps, "batch")
    processing = input_stages.filter(pl.col("stage") == PROCESSING).select("rank", processing="verdict")
    late = (
        input_stages.filter(pl.col("stage") == TRANSMISSION)
        .join(processing, on="rank")
        .filter(pl.col("verdict") == BOTTLENECK)
        .with_columns(
            kind=pl.when(pl.col("processing") == UNKNOWN).then(pl.lit(UNKNOWN)).otherwise(pl.lit(TRANSMISSION))
        )
    )
    for (kind,), part in late.partition_by("kind", as_dict=True, maintain_order=True).items():
        yield _late(str(kind), part, input_batches, per)
    slow = input_stages.filter((pl.col("stage") == OBTAINING) & (pl.col("verdict") == BOTTLENECK))
    if slow.height:
        yield _slow(slow, per)


def _late(kind: str, rows: pl.DataFrame, batches: pl.DataFrame, per: Per) -> Finding:
    emptiest = rows.sort("empty_ratio", descending=True)
    worst = emptiest.row(0, named=True)
    of_ranks = pl.col("rank").is_in(rows["rank"].implode())
    waited = (
        batches.filter((pl.col("queue") == DATA_QUEUE) & (pl.col("number") > FIRST) & of_ranks)
        .with_columns(lost=pl.when(pl.col("queue_size") == 0).then("duration_ns").otherwise(0))
        .group_by("rank")
        .agg(pl.col("lost").mean(), later=pl.col("lost").count().cast(pl.Int64))
        .sort("lost", "later", descending=True, nulls_last=True)
    )
    saving, later = waited.select(pl.col("lost").fill_null(0.0), "later").row(0) if waited.height else (0.0, 0)
    return Finding(
        rule="data-queue",
        message=kind,
        parameters={name: worst[name] for name in ("empty", "batches", "empty_ratio")},
        saving_ns=saved(per, saving, later),
        saving_ratio=saving / worst["interval_ns"] if worst["interval_ns"] else 0.0,
        evidence={name: worst[name] for name in ("queue", "empty", "batches", "empty_ratio", "mean_total_ns")},
        per=per,
    ).on(emptiest["rank"])


def _slow(rows: pl.DataFrame, per: Per) -> Finding:
    ranks = rows["rank"].to_list()
    ratio = pl.col("mean_total_ns") / pl.col("interval_ns")
    worst = rows.with_columns(ratio=ratio).sort("ratio", descending=True).row(0, named=True)
    return Finding(
        rule="data-queue",
        message=OBTAINING,
        parameters={"ranks": sorted(set(ranks)), "ratio": worst["ratio"]},
        saving_ns=saved(per, worst["mean_total_ns"], worst["batches"]),
        saving_ratio=worst["ratio"],
        where=place(ranks),
        evidence={name: worst[name] for name in ("queue", "batches", "mean_total_ns", "interval_ns")},
        per=per,
    )
