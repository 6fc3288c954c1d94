"""How much launched work waits for each stream of a device."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.device.launches import NO_LAUNCHES
from stepscope.analysis.methods.levels import AT, levels, sampled
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import RANKS
from stepscope.tables.base import Column

KEYS = ("rank", "device", "stream")


@dataclass(frozen=True)
class Limits:
    """When a queue is full."""

    full: float = limit(1024, "pieces of work in the queue of a stream of CUDA", "as in HTA")


LIMITS = Limits()

_PLACE = (meaning("device", "Device index; null if not recorded."), "stream")


def queued(kernels: pl.LazyFrame) -> pl.DataFrame:
    """How many pieces of work wait for each stream, from the start of the call that launches one until it starts: rows
    as of `levels`."""
    known = kernels.filter(pl.col("launch_start_ns").is_not_null() & (pl.col("launch_start_ns") <= pl.col("start_ns")))
    moments = known.select(*KEYS, "launch_start_ns", "start_ns").collect(engine="streaming")
    one = pl.lit(1, pl.Int32)
    changes = [
        moments.select(*KEYS, pl.col("launch_start_ns").alias(AT), change=one),
        moments.select(*KEYS, pl.col("start_ns").alias(AT), change=-one),
    ]
    return levels(pl.concat(changes), KEYS)


@analysis(
    "rank",
    columns(
        "rank",
        *_PLACE,
        Column("launches", "int64", "Pieces of work launched to it."),
        Column(
            "mean_length", "float64", "Mean number of waiting pieces, by time, from the first launch on.", importance=58
        ),
        Column("max_length", "int64", "Most pieces that wait.", importance=57),
        Column("waiting_ns", "int64", "Time in which at least one waits.", importance=56),
        Column("waiting_ratio", "float64", "Share of the time from its first launch to its last start.", importance=55),
        Column(
            "full_ns", "int64", "Time in which the queue is full, so that calls block; null if unknown.", importance=54
        ),
        Column("full_ratio", "float64", "Share of the same time; null if unknown.", importance=40),
        nulls="device stream full_ns full_ratio",
    ),
    together=True,
    nothing=NO_LAUNCHES,
)
def queues(kernels: pl.LazyFrame, ranks: pl.LazyFrame | None, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sum up how much launched work waits for each stream: one row per stream, in order.

    Whether a queue was full is unknown of devices without CUDA, and where more waited than fits the queue (a graph that
    launches many kernels at once, or another limit).

    Args:
        kernels: Device work.
        ranks: Kinds of devices.
        limits: When a queue is full.
    """
    time, level = pl.col("duration_ns"), pl.col("level")
    cuda = RANKS.or_empty(ranks).filter(pl.col("device_kind") == "cuda").select("rank").collect()["rank"]
    is_known = pl.col("rank").is_in(cuda.implode()) & (pl.col("max_length") <= limits.full)
    return (
        queued(kernels)
        .group_by(KEYS, maintain_order=True)
        .agg(
            launches=pl.len().cast(pl.Int64) // 2,
            area=(time * level.cast(pl.Int64)).sum(),
            max_length=level.max().cast(pl.Int64),
            waiting_ns=time.filter(level > 0).sum(),
            full_ns=time.filter(level >= limits.full).sum(),
            span=time.sum(),
        )
        .select(
            *KEYS,
            "launches",
            mean_length=_share("area"),
            max_length="max_length",
            waiting_ns="waiting_ns",
            waiting_ratio=_share("waiting_ns"),
            full_ns=pl.when(is_known).then("full_ns"),
            full_ratio=pl.when(is_known).then(_share("full_ns")),
        )
    )


def _share(name: str) -> pl.Expr:
    return pl.when(pl.col("span") > 0).then(pl.col(name) / pl.col("span")).otherwise(0.0)


@analysis(
    "rank",
    columns(
        "rank",
        *_PLACE,
        "start_ns duration_ns",
        Column("mean_length", "float64", "Mean number of waiting pieces in this time.", importance=58),
        Column("max_length", "int64", "Most pieces that wait in this time.", importance=57),
        nulls="device stream",
    ),
    together=True,
    nothing=NO_LAUNCHES,
)
def queue_lengths(kernels: pl.LazyFrame, points: int = 200) -> pl.DataFrame:
    """Show how many launched pieces wait for each stream over time, in order.

    Args:
        kernels: Device work.
        points: Equal parts into which the time of each rank is cut; 0 for one row a change.
    """
    changed = queued(kernels)
    if not points:
        rows = changed.rename({AT: "start_ns"})
        length = pl.col("level").cast(pl.Int64)
        return rows.select(*KEYS, "start_ns", "duration_ns", mean_length=length.cast(pl.Float64), max_length=length)
    parts = sampled(changed, KEYS, points)
    return parts.select(
        *KEYS, "start_ns", "duration_ns", mean_length="mean", max_length=pl.col("highest").cast(pl.Int64)
    )
