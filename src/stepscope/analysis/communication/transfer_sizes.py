"""How many calls of each rank move little over a transport, and how much of the time they take."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.rank_bandwidths import NO_TRANSPORTS
from stepscope.analysis.methods.step_windows import without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """Below which size a transfer is small."""

    sdma_bytes: int = limit(16_000_000, "bytes of a call inside of a host", "the Ascend advisor's limit")
    rdma_bytes: int = limit(1_000_000, "bytes of a call between hosts", "the Ascend advisor's limit")


COLUMNS = columns(
    "rank",
    Column("transport", "string", "`SDMA` inside of a host, `RDMA` between hosts."),
    Column("least_bytes", "int64", "Size below which a call is small on it.", title="limit"),
    Column("calls", "int64", "Calls that move anything over it, in all steps."),
    Column("small", "int64", "How many of them move less than the limit of the transport."),
    Column("small_ratio", "float64", "Share of the calls that are small."),
    meaning("total_ns", "Time of all of them on the transport."),
    Column("small_ns", "int64", "Time of the small ones.", title="time of small"),
    Column("small_time_ratio", "float64", "Share of that time.", title="of time"),
    Column("small_bytes", "int64", "Mean size of the small ones; null if there are none.", title="mean of small"),
    Column("small_bytes_per_s", "float64", "Bytes over time of the small ones.", title="rate of small"),
    Column("large_bytes_per_s", "float64", "The same of the others; null if there are none.", title="of large"),
    nulls="small_bytes small_bytes_per_s large_bytes_per_s",
    keep="rank transport small calls small_ratio small_ns total_ns small_bytes small_bytes_per_s large_bytes_per_s",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_TRANSPORTS)
def transfer_sizes(transports: pl.LazyFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Count the calls of each rank that move little, by transport. What a call moves over a transport is summed first.

    Returns:
        One row per rank and transport.
    """
    known = transports.filter(pl.col("transport").is_in(["SDMA", "RDMA"]))
    call = ["rank", "step", "group", "name", "transport"]
    moved = known.group_by(call).agg(pl.col("size_bytes", "duration_ns").sum()).filter(pl.col("size_bytes") > 0)
    calls = without_unmarked(moved.collect(engine="streaming"))
    least = pl.when(pl.col("transport") == "SDMA").then(limits.sdma_bytes).otherwise(limits.rdma_bytes)
    small = pl.col("small")
    size, time = pl.col("size_bytes"), pl.col("duration_ns")

    def rate(which: pl.Expr) -> pl.Expr:
        spent = time.filter(which).sum()
        return pl.when(spent > 0).then(size.filter(which).sum() / spent * 1e9)

    found = (
        calls.with_columns(small=size < least)
        .group_by("rank", "transport")
        .agg(
            least_bytes=least.first().cast(pl.Int64),
            calls=pl.len().cast(pl.Int64),
            small=small.sum().cast(pl.Int64),
            small_ratio=small.mean(),
            total_ns=time.sum(),
            small_ns=time.filter(small).sum(),
            small_bytes=size.filter(small).mean().round().cast(pl.Int64),
            small_bytes_per_s=rate(small),
            large_bytes_per_s=rate(~small),
        )
    )
    share = pl.when(pl.col("total_ns") > 0).then(pl.col("small_ns") / pl.col("total_ns")).otherwise(0.0)
    return found.with_columns(small_time_ratio=share).select(names(COLUMNS)).sort("rank", "transport")
