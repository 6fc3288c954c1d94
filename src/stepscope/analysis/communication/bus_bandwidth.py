"""How fast collectives move data: algorithm and bus bandwidth, by group, operation and size."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.arrival import MUTUAL
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES
from stepscope.tables.base import Column
from stepscope.tables.communication import IN_PARTS, PART, WHOLE

COLUMNS = columns(
    "group group_name operation",
    meaning("size_bytes", "Size of the whole buffer that is reduced, gathered or scattered; null if not recorded."),
    Column("ranks", "int32", "Ranks in the group; null if unknown.", importance=60),
    Column("calls", "int64", "Calls that all of these ranks were seen in.", importance=59),
    Column("shortest_ns", "int64", "Shortest transmission; null as `transmit_ns`.", importance=40),
    meaning(
        "transmit_ns",
        "Median transmission: from the last arrival to the first end; null for operations that ranks may leave before "
        "all have entered.",
    ),
    Column(
        "algorithm_bytes_per_s",
        "float64",
        "`size_bytes` over `transmit_ns`; null as either.",
        title="algorithm bandwidth",
        importance=63,
    ),
    Column(
        "bus_bytes_per_s",
        "float64",
        "Algorithm bandwidth times the factor of the operation: what each link carries.",
        title="bus bandwidth",
        importance=64,
    ),
    Column("best_bus_bytes_per_s", "float64", "Bus bandwidth of the shortest call.", title="best", importance=50),
    Column("skew_ns", "int64", "Median time from the first to the last arrival.", title="arrival skew", importance=58),
    Column("end_skew_ns", "int64", "Median time from the first to the last end.", title="end skew", importance=45),
    keep="group_name operation size_bytes",
)


def bus_factor(operation: pl.Expr, ranks: pl.Expr) -> pl.Expr:
    """What bus bandwidth is of algorithm bandwidth, as nccl-tests defines it; null for operations of one root
    and unknown ones, which ranks may leave before all have entered."""
    share = (ranks - 1) / ranks
    factors = {
        "all_reduce": 2 * share,
        **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), share),
    }
    return pl.coalesce(*(pl.when(operation == name).then(factor) for name, factor in factors.items()))


@analysis("job", COLUMNS, whole_job=True)
def bus_bandwidth(arrival: pl.DataFrame, collectives: pl.LazyFrame | None, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Divide the sizes of collectives by the time in which all of their ranks were in the call: one row per group,
    operation and size, the longest transmission in total first.

    Waiting for the last rank is left out (see the skew). Calls that not all ranks of their group were seen in are not
    used, as the last to arrive is unknown. Ranks may leave a call of one root (e.g. a broadcast) before others
    enter, so of these only the skew is known. Host marks do not count on ranks with calls on the device.

    Raises:
        Unavailable: If no call was seen on all of its ranks.
    """
    in_parts = COLLECTIVES.or_empty(collectives).filter(pl.col("operation").is_in(IN_PARTS))
    known = in_parts.select("rank", "collective", "size_of").collect(engine="streaming")
    whole = pl.col("members") >= pl.col("group_size").fill_null(pl.col("members"))
    with_device = arrival.filter("on_device")["rank"].unique()
    moves = pl.col("on_device") | ~pl.col("rank").is_in(with_device.implode())
    used = moves & ~pl.col("point_to_point") & (pl.col("members") > 1) & whole & (pl.col("operation") != "barrier")
    calls = (
        arrival.filter(used)
        .join(known, on=["rank", "collective"], how="left", maintain_order="left")
        .group_by(*CALL, "operation", maintain_order=True)
        .agg(
            size_bytes=_whole_size().max(),
            seen=pl.len(),
            ranks=pl.col("members").max(),
            transmit_ns=pl.when(pl.col("operation").is_in(MUTUAL).first()).then(
                pl.col("end_ns").min() - pl.col("start_ns").max()
            ),
            skew_ns=pl.col("start_ns").max() - pl.col("start_ns").min(),
            end_skew_ns=pl.col("end_ns").max() - pl.col("end_ns").min(),
        )
        .filter((pl.col("seen") == pl.col("ranks")) & (pl.col("transmit_ns").fill_null(1) > 0))
    )
    if calls.is_empty():
        raise Unavailable("no collective was seen on all ranks of its group: open the recordings of all ranks together")
    factor = bus_factor(pl.col("operation"), pl.col("ranks"))

    def rate(time: str) -> pl.Expr:
        return pl.col("size_bytes") / pl.col(time) * 1e9

    return (
        calls.group_by("group", "operation", "size_bytes", "ranks")
        .agg(
            calls=pl.len().cast(pl.Int64),
            shortest_ns=pl.col("transmit_ns").min(),
            spent=pl.col("transmit_ns").sum(),
            **{name: rounded(pl.col(name).median()) for name in ("transmit_ns", "skew_ns", "end_skew_ns")},
        )
        .join(group_names(groups), on="group", how="left")
        .with_columns(
            algorithm_bytes_per_s=rate("transmit_ns"),
            bus_bytes_per_s=rate("transmit_ns") * factor,
            best_bus_bytes_per_s=rate("shortest_ns") * factor,
        )
        .sort(-pl.col("spent"), "group", "operation", "size_bytes", "ranks", nulls_last=True)
        .select(names(COLUMNS))
    )


def _whole_size() -> pl.Expr:
    """The size of a call's whole buffer; null if what is recorded may be a part of it."""
    size, gathered = pl.col("size_bytes"), pl.col("operation").is_in(["all_gather", "gather"])
    parts = pl.when((pl.col("size_of") == PART) & gathered).then(size * pl.col("members"))
    return pl.when(~pl.col("operation").is_in(IN_PARTS) | (pl.col("size_of") == WHOLE)).then(size).otherwise(parts)
