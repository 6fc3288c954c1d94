"""How long communication calls take, by operation: on each rank, and over all ranks; and how far the ranks of a call
differ."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.distributions import (
    OVER_RANKS,
    STATISTICS,
    distributions,
    distributions_over_ranks,
)
from stepscope.analysis.methods.statistics import share, share_of
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

BY_RANK = columns(
    "rank operation",
    *STATISTICS,
    meaning("share_ratio", "Share of the time of all calls of the rank."),
    nulls="std_ns",
    keep="operation total_ns share_ratio count mean_ns max_ns",
)
ALL = columns(
    "operation",
    *STATISTICS,
    *OVER_RANKS,
    meaning("share_ratio", "Share of the time of all calls of all ranks."),
    nulls="std_ns",
    keep="operation total_ns share_ratio count mean_ns max_ns min_ns max_rank min_rank",
)
SPREAD = columns(
    meaning("name", "Name of the call on its lowest rank."),
    "step operation size_bytes group group_name",
    Column("sequence", "int64", "Position of the call in its group, as in `arrival`."),
    *STATISTICS,
    *OVER_RANKS,
    Column("last_rank", "int32", "Rank that entered last; null if all entered together.", importance=60),
    Column("late_ns", "int64", "How long after the first rank the last one entered."),
    nulls="step size_bytes group group_name std_ns last_rank",
    keep="name max_ns max_rank min_ns min_rank last_rank late_ns step",
)

_CALL = list(CALL)


@analysis("rank", BY_RANK, together=True)
def call_totals(collectives: pl.LazyFrame) -> pl.DataFrame:
    """Sum up the communication calls of each rank by operation, longest total first."""
    found = distributions(collectives, ["rank", "operation"]).with_columns(share())
    return found.select(names(BY_RANK)).sort("rank", -pl.col("total_ns"), "operation")


@analysis("job", ALL)
def call_statistics(collectives: pl.LazyFrame) -> pl.DataFrame:
    """Sum up the communication calls of all ranks by operation, longest total first."""
    found = distributions_over_ranks(collectives, ["operation"]).with_columns(all=pl.lit(0))
    shares = found.with_columns(share_ratio=share_of(pl.col("total_ns"), "all"))
    return shares.select(names(ALL)).sort(-pl.col("total_ns"), "operation")


@analysis("job", SPREAD, whole_job=True)
def call_spread(arrival: pl.DataFrame, groups: pl.LazyFrame | None = None, limit: int = 100) -> pl.DataFrame:
    """Compare the ranks of the `limit` calls that take longest on any rank: one row per call, longest first.

    The rank on which a call is shortest waited least, so the others waited for it.

    Raises:
        Unavailable: If no calls were matched.
    """
    calls = arrival.filter(pl.col("members") > 1).with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    if calls.is_empty():
        raise Unavailable("no communication was matched between ranks")
    longest = calls.group_by(_CALL).agg(pl.col("duration_ns").max())
    chosen = longest.sort(-pl.col("duration_ns"), *_CALL, nulls_last=True).head(limit).drop("duration_ns")
    some = calls.join(chosen, on=_CALL, how="semi", nulls_equal=True).sort("rank")
    lates = some.filter("is_last").group_by(_CALL).agg(last_rank=pl.col("rank").min())
    about = some.group_by(_CALL, maintain_order=True).agg(
        pl.col("name", "step", "operation").first(),
        pl.col("size_bytes").max(),
        late_ns=pl.col("start_ns").max() - pl.col("start_ns").min(),
    )
    return (
        distributions_over_ranks(some.lazy(), _CALL)
        .join(about, on=_CALL, nulls_equal=True)
        .join(lates, on=_CALL, how="left", nulls_equal=True)
        .join(group_names(groups), on="group", how="left")
        .sort(-pl.col("max_ns"), *_CALL, nulls_last=True)
        .select(names(SPREAD))
    )
