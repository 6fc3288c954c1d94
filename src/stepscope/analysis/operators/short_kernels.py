"""How much of a rank's device work is made of short kernels, which cost more to launch than to run."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import rounded, share_of
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

EDGES_NS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
"""Between the lengths of the histogram."""

NO_WORK = "no kernels of a device were recorded"
NO_SHORT = "no kernel shorter than the limit was recorded"


@dataclass(frozen=True)
class Limits:
    """Which kernels are short."""

    short_ns: int = limit(10_000, "ns", "about what a launch costs the host; TraceLens' limit")


@analysis(
    "rank",
    columns(
        "rank",
        Column("from_ns", "int64", "Kernels of this length and more.", title="from", importance=90),
        Column("to_ns", "int64", "Kernels shorter than this; null for the longest.", title="to", importance=90),
        meaning("count", "Number of kernels."),
        Column("count_ratio", "float64", "Share of all kernels.", importance=60),
        meaning("total_ns", "Time of these kernels."),
        meaning("share_ratio", "Share of the time of all kernels."),
        nulls="to_ns",
    ),
    together=True,
    nothing=NO_WORK,
)
def kernel_lengths(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Count kernels by length: one row per range of lengths that has any. Copies and communication are left out."""
    work = kernels.filter(pl.col("kind") == "compute")
    at = pl.sum_horizontal(*((pl.col("duration_ns") >= edge).cast(pl.Int32) for edge in EDGES_NS))
    sums = work.group_by("rank", at=at).agg(count=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum())
    bounds = pl.DataFrame({"from_ns": [0, *EDGES_NS], "to_ns": [*EDGES_NS, None]}).with_columns(
        at=pl.int_range(pl.len(), dtype=pl.Int32)
    )
    return (
        sums.collect()
        .join(bounds, on="at")
        .with_columns(count_ratio=share_of(pl.col("count"), "rank"), share_ratio=share_of(pl.col("total_ns"), "rank"))
        .sort("rank", "from_ns")
        .select("rank", "from_ns", "to_ns", "count", "count_ratio", "total_ns", "share_ratio")
    )


@analysis(
    "rank",
    columns(
        "rank",
        meaning("name", "Name of the kernel."),
        Column("short", "int64", "Its calls that are shorter than the limit.", title="short calls", importance=62),
        Column("short_ratio", "float64", "Share of its calls.", importance=50),
        Column("short_ns", "int64", "Time of these calls.", title="time", importance=61),
        Column("mean_ns", "int64", "Mean of these calls."),
        Column("count_ratio", "float64", "Share of all kernels of the rank.", importance=60),
        meaning("share_ratio", "Share of the time of all kernels of the rank."),
        nulls="",
        keep="name",
    ),
    together=True,
    nothing=NO_SHORT,
)
def short_kernels(kernels: pl.LazyFrame, limits: Limits = Limits(), below_ns: float | None = None) -> pl.DataFrame:
    """Sum up kernels shorter than a limit by name, the most frequent first. Copies and communication are left out.

    Args:
        kernels: Device work.
        limits: Which kernels are short.
        below_ns: The limit, in place of that of `limits`.
    """
    is_short = pl.col("duration_ns") < (limits.short_ns if below_ns is None else below_ns)
    work = kernels.filter(pl.col("kind") == "compute")
    sums = work.group_by("rank", "name").agg(
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
        short=is_short.sum().cast(pl.Int64),
        short_ns=pl.col("duration_ns").filter(is_short).sum(),
    )
    every = pl.col("count").sum().over("rank"), pl.col("total_ns").sum().over("rank")
    return (
        sums.with_columns(
            short_ratio=pl.col("short") / pl.col("count"),
            count_ratio=pl.col("short") / every[0],
            share_ratio=pl.when(every[1] > 0).then(pl.col("short_ns") / every[1]).otherwise(0.0),
            mean_ns=rounded(pl.col("short_ns") / pl.col("short")),
        )
        .filter(pl.col("short") > 0)
        .select("rank", "name", "short", "short_ratio", "short_ns", "mean_ns", "count_ratio", "share_ratio")
        .sort("rank", -pl.col("short"), -pl.col("short_ns"), "name")
        .collect()
    )
