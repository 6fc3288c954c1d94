"""Batches reach the device too late: the queue on it is empty when a step wants one."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.platforms import CPU, MINDSPORE, NPU, Choices, Platform, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import Unit, unit_of
from stepscope.analysis.input.input_queues import DATA_QUEUE, FIRST
from stepscope.analysis.input.input_stages import BOTTLENECK, OBTAINING, PROCESSING, TRANSMISSION, UNKNOWN

CAUSES: dict[str, Choices] = {
    TRANSMISSION: {
        (None, None): "The host had batches ready, so sending them to the device is the slow part.",
        (None, CPU): "Batches were ready, so handing them over to training is the slow part.",
    },
    UNKNOWN: {
        (None, None): "Either the dataset pipeline or the sending is slow; the queue on the host was not recorded.",
    },
}
_COPIES = "Look at the copies to the device: batch size and data type, PCIe load, other work of the sending thread"
ACTIONS: dict[str, Choices] = {
    TRANSMISSION: {
        (MINDSPORE, None): _COPIES + "; raise prefetch_size, or sink several steps at once.",
        (MINDSPORE, CPU): "Look at batch size, data type and other work of the thread that hands batches over; raise "
        "prefetch_size.",
        (None, CPU): "Look at batch size, data type and other work of the thread that hands batches over.",
        (None, None): _COPIES + ".",
    },
    UNKNOWN: {
        (MINDSPORE, None): "Record the dataset pipeline too (data_process=True), and see which of the two is slow.",
        (None, None): "Record the making of batches too, and see which of the two is slow.",
    },
}
QUEUES: Choices = {(None, None): "the data queue on the device", (None, CPU): "the data queue"}
TAKING: Choices = {
    (None, None): "Take fewer and larger tensors in a batch, and see what else runs beside the operator that takes it.",
    (None, NPU): "Take fewer and larger tensors in a batch, and see what else runs on the device's own CPU (AI CPU).",
}


@rule("data-queue")
def data_queue(
    input_stages: pl.DataFrame,
    input_batches: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
) -> Iterator[Finding]:
    """Report ranks whose data queue was empty although the host's was not, and ranks that are slow to take batches.

    A data queue that is empty behind a slow pipeline is the matter of `host-queue`. The saving is the time of taking a
    batch where the queue was empty, mean of all batches without the first (which cannot be ready), on the rank that
    waited most; of a recording without steps, the sum.
    """
    unit = unit_of(steps, "batch")
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
        yield _late(str(kind), part, input_batches, unit, platform_of(ranks, part["rank"].to_list()))
    slow = input_stages.filter((pl.col("stage") == OBTAINING) & (pl.col("verdict") == BOTTLENECK))
    if slow.height:
        yield _slow(slow, unit, platform_of(ranks, slow["rank"].to_list()))


def _late(kind: str, rows: pl.DataFrame, batches: pl.DataFrame, unit: Unit, platform: Platform) -> Finding:
    ranks = rows["rank"].to_list()
    worst = rows.sort("empty_ratio", descending=True).row(0, named=True)
    waited = (
        batches.filter((pl.col("queue") == DATA_QUEUE) & (pl.col("number") > FIRST) & pl.col("rank").is_in(ranks))
        .with_columns(lost=pl.when(pl.col("queue_size") == 0).then("duration_ns").otherwise(0))
        .group_by("rank")
        .agg(pl.col("lost").mean(), later=pl.col("lost").count().cast(pl.Int64))
        .sort("lost", "later", descending=True, nulls_last=True)
    )
    saving, later = waited.select(pl.col("lost").fill_null(0.0), "later").row(0) if waited.height else (0.0, 0)
    where = on_rank(worst["rank"], ranks)
    return Finding(
        rule="data-queue",
        summary=(
            f"{named(ranks, 'gets', 'get')} batches too late: {worst['empty']} of {worst['batches']} batches "
            f"({worst['empty_ratio']:.0%}) found {platform.pick(QUEUES)} empty{where}."
        ),
        cause=platform.pick(CAUSES[kind]),
        action=platform.pick(ACTIONS[kind]),
        saving_ns=unit.saved(saving, later),
        saving_ratio=saving / worst["interval_ns"] if worst["interval_ns"] else 0.0,
        where=place(ranks),
        evidence={name: worst[name] for name in ("queue", "empty", "batches", "empty_ratio", "mean_total_ns")},
        per=unit.per,
    )


def _slow(rows: pl.DataFrame, unit: Unit, platform: Platform) -> Finding:
    ranks = rows["rank"].to_list()
    ratio = pl.col("mean_total_ns") / pl.col("interval_ns")
    worst = rows.with_columns(ratio=ratio).sort("ratio", descending=True).row(0, named=True)
    return Finding(
        rule="data-queue",
        summary=(
            f"{named(ranks, 'is', 'are')} slow to take batches that lie ready: {worst['ratio']:.0%} of "
            "the time between two of them."
        ),
        cause="The queue was never empty, so the operator that takes from it is slow itself.",
        action=platform.pick(TAKING),
        saving_ns=unit.saved(worst["mean_total_ns"], worst["batches"]),
        saving_ratio=worst["ratio"],
        where=place(ranks),
        evidence={name: worst[name] for name in ("queue", "batches", "mean_total_ns", "interval_ns")},
        per=unit.per,
    )
