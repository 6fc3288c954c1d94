"""Kernels that leave multiprocessors of their device without work, as they have fewer blocks than it has of these."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

PARTS = 10_000
"""Parts of a block for each multiprocessor that are told apart; traces have two digits."""

NO_RESOURCES = "what kernels use of the multiprocessors was not recorded"

COLUMNS = columns(
    "rank",
    meaning("name", "Name of the kernel."),
    Column("few", "int64", "Its calls with fewer blocks than multiprocessors.", title="with few blocks", importance=62),
    Column("count", "int64", "All of its calls.", importance=55),
    Column("blocks_per_sm", "float64", "Mean blocks for each multiprocessor, of those with few.", importance=61),
    Column("few_ns", "int64", "Time of those with few.", title="time", importance=63),
    Column("share_ratio", "float64", "Share of the time of all kernels that compute.", importance=60),
    Column("idle_ratio", "float64", "Share of multiprocessors without work meanwhile, mean by time.", importance=59),
    nulls="",
    keep="name",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_RESOURCES)
def few_blocks(kernels: pl.LazyFrame, kernel_resources: pl.LazyFrame) -> pl.DataFrame:
    """Sum up kernels with fewer blocks than the device has multiprocessors: one row per kernel, the longest time first.

    Without any such kernel, each rank has one row of its longest one, with nothing of it.
    """
    known = kernel_resources.filter(pl.col("blocks_per_sm") > 0).select("rank", "kernel", "blocks_per_sm")
    work = kernels.filter(pl.col("kind") == "compute").select("rank", "kernel", "name", "duration_ns")
    few, time = pl.col("blocks_per_sm") < 1, pl.col("duration_ns")
    # whole numbers, of which the sum is the same in whatever order they are added; others may be too large for one
    parts = pl.when(few).then(pl.col("blocks_per_sm") * PARTS).round().cast(pl.Int64)
    sums = (
        work.join(known, on=["rank", "kernel"])
        .group_by("rank", "name")
        .agg(
            few=few.sum().cast(pl.Int64),
            count=pl.len().cast(pl.Int64),
            few_ns=time.filter(few).sum(),
            total_ns=time.sum(),
            blocks=parts.sum() / PARTS,
            used_ns=(parts * time).sum() / PARTS,
        )
        .collect(engine="streaming")
    )
    every = pl.col("total_ns").sum().over("rank")
    first = pl.col("total_ns").rank("ordinal", descending=True).over("rank") == 1
    none = pl.col("few").sum().over("rank") == 0
    some = pl.col("few_ns") > 0
    return (
        sums.sort("rank", -pl.col("total_ns"), "name")
        .with_columns(
            blocks_per_sm=pl.when(pl.col("few") > 0).then(pl.col("blocks") / pl.col("few")).otherwise(0.0),
            share_ratio=pl.when(every > 0).then(pl.col("few_ns") / every).otherwise(0.0),
            idle_ratio=pl.when(some).then(1 - pl.col("used_ns") / pl.col("few_ns")).otherwise(0.0),
        )
        .filter((pl.col("few") > 0) | (none & first))
        .select(column.name for column in COLUMNS)
        .sort("rank", -pl.col("few_ns"), "name")
    )
