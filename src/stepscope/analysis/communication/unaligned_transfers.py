"""Transfers inside of a host whose size is no multiple of what the engine moves at once, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.names import unnumbered
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

SDMA, ON_CHIP = "SDMA", "ON_CHIP"
MOVES = r"(?i)memcpy|reduce"
"""Tasks that move or reduce data."""


@dataclass(frozen=True)
class Limits:
    """Which sizes are aligned, and which transfers are alike."""

    aligned_bytes: int = limit(512, "bytes", "the Ascend advisor: SDMA moves multiples of 512 bytes best")
    tasks: int = limit(10, "aligned tasks of like size", "chosen by us: fewer show no typical rate")


COLUMNS = columns(
    "rank",
    Column("call", "string", "Calls that the tasks are parts of, without their numbers; null if not recorded."),
    Column("task", "string", "What the tasks do, e.g. `Memcpy`, `Reduce_Inline`."),
    Column("link", "string", "Kind of link, e.g. `HCCS`."),
    Column("least_bytes", "int64", "Smallest size in the row: sizes of one row differ by less than a factor of two."),
    Column("tasks", "int64", "Number of tasks of more than the least size that can be aligned."),
    Column("unaligned", "int64", "How many of them have a size that is no multiple of 512 bytes."),
    Column("total_bytes", "int64", "Bytes that all of them move."),
    Column("total_ns", "int64", "Time of all of them.", title="time"),
    Column("unaligned_bytes", "int64", "Bytes that the unaligned ones move."),
    Column("unaligned_ns", "int64", "Time of the unaligned ones.", title="unaligned time", importance=120),
    Column("bandwidth_bytes_per_s", "float64", "Bytes over time of the unaligned ones.", title="rate"),
    Column(
        "aligned_bytes_per_s",
        "float64",
        "The same of aligned tasks of like size on the same kind of link, on all ranks; null if there are few.",
        title="if aligned",
    ),
    Column("excess_ns", "int64", "How much longer the unaligned ones take than at that rate; null if that is unknown."),
    nulls="call link bandwidth_bytes_per_s aligned_bytes_per_s excess_ns",
    keep="rank call task unaligned tasks unaligned_ns total_ns bandwidth_bytes_per_s aligned_bytes_per_s excess_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def unaligned_transfers(communication_tasks: pl.LazyFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Compare tasks inside of a host whose size is no multiple of `aligned_bytes` with those whose size is.

    Tasks on the chip itself, and those of at most `aligned_bytes`, do not count.

    Returns:
        One row per rank, kind of call, task and link, and class of sizes, the longest unaligned time first.
    """
    size = pl.col("size_bytes")
    moves = (pl.col("transport") == SDMA) & (pl.col("link").fill_null("") != ON_CHIP)
    tasks = communication_tasks.filter(
        moves & (size > limits.aligned_bytes) & pl.col("name").str.contains(MOVES)
    ).select(
        "rank",
        "link",
        "size_bytes",
        "duration_ns",
        call=unnumbered("call"),
        task="name",
        size_class=size.log(2).floor().cast(pl.Int32),
        off=size % limits.aligned_bytes != 0,
    )
    kind = ["rank", "call", "task", "link", "size_class"]
    off = pl.col("off")
    sums = (
        tasks.group_by(kind)
        .agg(
            least_bytes=pl.col("size_bytes").min(),
            tasks=pl.len().cast(pl.Int64),
            unaligned=off.sum().cast(pl.Int64),
            total_bytes=pl.col("size_bytes").sum(),
            total_ns=pl.col("duration_ns").sum(),
            unaligned_bytes=pl.col("size_bytes").filter(off).sum(),
            unaligned_ns=pl.col("duration_ns").filter(off).sum(),
        )
        .collect(engine="streaming")
    )
    alike = ["task", "link", "size_class"]
    left = pl.col("total_ns") - pl.col("unaligned_ns")
    moved = pl.col("total_bytes") - pl.col("unaligned_bytes")
    enough = (pl.col("tasks") - pl.col("unaligned")).sum().over(alike) >= limits.tasks
    rate = moved.sum().over(alike) / left.sum().over(alike) * 1e9
    own = pl.when(pl.col("unaligned_ns") > 0).then(pl.col("unaligned_bytes") / pl.col("unaligned_ns") * 1e9)
    rows = sums.with_columns(
        bandwidth_bytes_per_s=own, aligned_bytes_per_s=pl.when(enough & (left.sum().over(alike) > 0)).then(rate)
    )
    excess = pl.col("unaligned_ns") - pl.col("unaligned_bytes") / pl.col("aligned_bytes_per_s") * 1e9
    return (
        rows.with_columns(excess_ns=rounded(excess.clip(lower_bound=0)))
        .sort(-pl.col("unaligned_ns"), *kind, nulls_last=True)
        .select(names(COLUMNS))
    )
