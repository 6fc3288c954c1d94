"""Calls that took seconds to transmit, as when packets are lost and sent again, and calls that were tried again."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names, hosts_of
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import RANKS, TRANSPORTS
from stepscope.tables.base import Column, schema_of

RDMA = "RDMA"
RETRIED, LONG_RDMA, LONG = "retried", "long_rdma", "long"
SIGNS = (RETRIED, LONG_RDMA, LONG)
"""How a call shows it: the library states that it tried the call again; its transfer between hosts took seconds; the
whole call did, and what went over which transport is not recorded."""

_STEP = ["rank", "step", "group", "name"]
_KIND = ["operation", "size_bytes", "group_size"]


@dataclass(frozen=True)
class Limits:
    """How long a transfer takes if packets are sent again."""

    least_ns: int = limit(4_000_000_000, "ns", "the Ascend advisor: a lost packet is sent again after 4 s")
    times_typical: float = limit(2.0, "times the typical time", "chosen by us: longer than its size explains")
    times_unknown: float = limit(
        10.0, "times the typical time, if the transport is unknown", "chosen by us: nothing ordinary comes near it"
    )


COLUMNS = columns(
    "group group_name step rank",
    meaning("name", "Name of the call."),
    "operation size_bytes",
    Column("sign", "string", "What shows it.", values=SIGNS),
    meaning("start_ns", "When the rank entered the call, on its own clock."),
    meaning("duration_ns", "Length of the call on this rank."),
    meaning("transmit_ns", "The same without waiting for other ranks; all of it if waiting is unknown."),
    Column("rdma_bytes", "int64", "Bytes moved between hosts; null if not recorded.", title="RDMA size"),
    Column("rdma_ns", "int64", "Time of that; null if not recorded.", title="RDMA time"),
    Column("rdma_bytes_per_s", "float64", "Bytes over time.", title="RDMA rate"),
    Column(
        "typical_ns",
        "int64",
        "Median transmission of other calls of its kind, else what its bytes take at the median rate between hosts; "
        "null if neither is known.",
    ),
    Column("excess_ns", "int64", "How much longer it took, on the rank of the call that took least; null if unknown."),
    nulls="group group_name step size_bytes rdma_bytes rdma_ns rdma_bytes_per_s typical_ns excess_ns",
    keep="name rank step sign transmit_ns excess_ns rdma_bytes rdma_ns group_name",
)


@analysis("job", COLUMNS, whole_job=True)
def retransmissions(
    arrival: pl.DataFrame,
    collectives: pl.LazyFrame,
    transports: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find calls that transmit for seconds on all of their ranks, and calls that the library states to have retried.

    Transmission counts, not waiting for a late rank. Where the transports are recorded, most of it must be between
    hosts; else the call must be one between hosts, on devices, and take `times_unknown` as long as others of its kind.

    Returns:
        One row per rank and call, the longest call first.
    """
    again = collectives.filter(pl.col("retried").fill_null(value=False)).select("rank", "collective").collect()
    rows = arrival.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    some = rows.filter((pl.col("duration_ns") >= limits.least_ns) & ~pl.col("point_to_point"))
    retried = rows.join(again, on=["rank", "collective"], how="semi")
    kept = pl.concat([some, retried]).select(*CALL).unique()
    if kept.is_empty():  # nearly always
        return pl.DataFrame(schema=schema_of(COLUMNS))
    calls = (
        rows.join(again.with_columns(retried=True), on=["rank", "collective"], how="left", maintain_order="left")
        .with_columns(pl.col("retried").fill_null(value=False), pl.col("transmit_ns").fill_null(pl.col("duration_ns")))
        .with_columns(pl.col("transmit_ns").min().over(*CALL, _alone()).alias("least"))
    )
    chosen = calls.join(kept, on=list(CALL), how="semi", nulls_equal=True).with_columns(call=_call())
    chosen = chosen.filter((pl.col("least") >= limits.least_ns) | pl.col("retried").any().over("call"))
    others = calls.join(chosen.select("rank", "collective"), on=["rank", "collective"], how="anti")
    sent = _sent(TRANSPORTS.or_empty(transports))
    typical = _typical(others, chosen, sent)
    chosen = chosen.join(sent, on=_STEP, how="left", nulls_equal=True, maintain_order="left").with_columns(typical)
    hosts = hosts_of(RANKS.or_empty(ranks).collect())
    chosen = chosen.join(hosts, on="rank", how="left", maintain_order="left").with_columns(
        hosts=pl.col("host").n_unique().over("call"), excess_ns=(pl.col("least") - pl.col("typical_ns")).clip(0)
    )
    known = sent.height > 0
    longer = pl.col("least") / pl.col("typical_ns").clip(1)
    by_rdma = (pl.col("rdma_ns").max().over("call") >= limits.least_ns) & (longer >= limits.times_typical).fill_null(
        value=True
    )
    first = rows.group_by("group").agg(first=pl.col("sequence").min())  # it sets the group's connections up
    chosen = chosen.join(first, on="group", how="left", nulls_equal=True, maintain_order="left")
    by_length = (
        (longer >= limits.times_unknown)
        & (pl.col("hosts") > 1)
        & pl.col("on_device")
        & (pl.col("sequence") > pl.col("first"))
    )
    is_long = pl.col("least") >= limits.least_ns
    sign = (
        pl.when(pl.col("retried").any().over("call"))
        .then(pl.lit(RETRIED))
        .when(is_long & by_rdma & known)
        .then(pl.lit(LONG_RDMA))
        .when(is_long & by_length & (not known))
        .then(pl.lit(LONG))
    )
    found = chosen.with_columns(
        sign=sign,
        start_ns=pl.col("start_ns") + pl.col("offset_ns"),
        rdma_bytes_per_s=pl.when(pl.col("rdma_ns") > 0).then(pl.col("rdma_bytes") / pl.col("rdma_ns") * 1e9),
    ).filter(pl.col("sign").is_not_null())
    order = ["order", "group", "sequence", "rank"]
    return (
        in_order(found.with_columns(order=-pl.col("least")), *order, nulls_last=True)
        .join(group_names(groups), on="group", how="left", maintain_order="left")
        .select(names(COLUMNS))
    )


def _alone() -> pl.Expr:
    """The rank of rows that were not matched: they are calls of one rank."""
    return pl.when(pl.col("members") < 2).then("rank")


def _call() -> pl.Expr:
    """A number for each call."""
    return pl.struct(*CALL, _alone()).rank("dense")


def _sent(transports: pl.LazyFrame) -> pl.DataFrame:
    """What each rank's calls moved between hosts: `rdma_bytes`, `rdma_ns`."""
    between = transports.filter(pl.col("transport") == RDMA).group_by(_STEP)
    return between.agg(rdma_bytes=pl.col("size_bytes").sum(), rdma_ns=pl.col("duration_ns").sum()).collect()


def _typical(others: pl.DataFrame, chosen: pl.DataFrame, sent: pl.DataFrame) -> pl.Series:
    """What each of the chosen calls takes usually: as others of its kind, else as its bytes between hosts."""
    of_kind = others.filter(pl.col("size_bytes").is_not_null()).group_by(_KIND)
    medians = of_kind.agg(of_kind=rounded(pl.col("least").median()))
    ordinary = sent.join(chosen, on=_STEP, how="anti", nulls_equal=True).filter(pl.col("rdma_ns") > 0)
    rate = ordinary.select((pl.col("rdma_bytes") / pl.col("rdma_ns")).median()).item()
    at_rate = rounded(pl.col("rdma_bytes") / rate) if rate else pl.lit(None, pl.Int64)
    rows = chosen.join(medians, on=_KIND, how="left", nulls_equal=True, maintain_order="left")
    rows = rows.join(sent, on=_STEP, how="left", nulls_equal=True, maintain_order="left")
    of_call = pl.coalesce("of_kind", at_rate.max().over("call"))
    typical: pl.Series = rows.select(typical_ns=of_call)["typical_ns"]
    return typical
