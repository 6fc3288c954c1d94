"""What the operators of a job take on all its ranks: kernels if a device was recorded, else operators of the host."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

KINDS = ("compute", "communication", "memory", "host")
"""Kinds of device work, and work of a host without device."""

ON_HOST = ("HOST_CPU", "CPU")
"""Lists of the host's operators in `operator_instances`."""

_COLUMNS = columns(
    Column("kind", "string", "Kind of device work; `host` for operators of ranks without device.", values=KINDS),
    Column("type", "string", "Operator type; null if not recorded.", importance=41),
    Column("name", "string", "Name of the kernel or operator."),
    "count",
    Column("total_ns", "int64", "Total time on all ranks; of host operators without those that they call."),
    Column("ranks", "int64", "Number of ranks that have any."),
    Column("max_rank", "int32", "Rank with most of it; of several, the lowest."),
    Column("max_ns", "int64", "How much that is."),
    Column("share_ratio", "float64", "Share of the time of all rows.", title="share"),
    nulls="type",
)


@analysis("job", _COLUMNS)
def operator_shares(
    kernel_totals: pl.DataFrame | None,
    operator_summary: pl.DataFrame | None,
    operator_instances: pl.DataFrame | None,
) -> pl.DataFrame:
    """Sum kernels and operators over the ranks: one row per kind, type and name, longest first.

    Raises:
        Unavailable: If neither was recorded.
    """
    parts: list[pl.DataFrame] = []
    for found in (_kernels(kernel_totals), _operators(operator_summary), _listed(operator_instances)):
        if found is not None:
            done = pl.concat(parts)["rank"].unique() if parts else pl.Series([], dtype=pl.Int32)
            parts.append(found.filter(~pl.col("rank").is_in(done.implode())))
    rows = pl.concat(parts) if parts else pl.DataFrame()
    if rows.is_empty():
        raise Unavailable("neither kernels nor operators were recorded")
    each = ["kind", "type", "name"]
    by_rank = rows.group_by(*each, "rank").agg(pl.col("count", "total_ns").sum())
    ordered = by_rank.sort(*each, -pl.col("total_ns"), "rank", nulls_last=True)
    sums = ordered.group_by(each, maintain_order=True).agg(
        pl.col("count").sum(),
        ranks=pl.len().cast(pl.Int64),
        max_rank=pl.col("rank").first(),
        max_ns=pl.col("total_ns").first(),
        total_ns=pl.col("total_ns").sum(),
    )
    total = pl.col("total_ns").sum()
    shared = sums.with_columns(share_ratio=pl.when(total > 0).then(pl.col("total_ns") / total).otherwise(0.0))
    return shared.select(names(_COLUMNS)).sort(-pl.col("total_ns"), *each, nulls_last=True)


_RAW = ["rank", "kind", "type", "name", "count", "total_ns"]


def _kernels(totals: pl.DataFrame | None) -> pl.DataFrame | None:
    """Calls of communication by type, if it is known: their names count the calls."""
    if totals is None:
        return None
    called = pl.when(pl.col("kind") == "communication").then(pl.coalesce("type", "name")).otherwise("name")
    return totals.with_columns(name=called).select(_RAW)


def _operators(summary: pl.DataFrame | None) -> pl.DataFrame | None:
    if summary is None:
        return None
    host = summary.with_columns(kind=pl.lit("host"), type=pl.lit(None, pl.String), total_ns="self_ns")
    return host.select(_RAW)


def _listed(instances: pl.DataFrame | None) -> pl.DataFrame | None:
    """Of each rank the list with most time, as lists may overlap."""
    if instances is None:
        return None
    known = instances.filter(pl.col("total_ns").is_not_null() & pl.col("name").is_not_null())
    most = known.group_by("rank", "unit").agg(pl.col("total_ns").sum())
    ordered = most.sort("rank", -pl.col("total_ns"), "unit", nulls_last=True)
    first = ordered.unique("rank", keep="first", maintain_order=True).select("rank", "unit")
    on_host = pl.col("unit").is_in(ON_HOST)
    kind = pl.when(on_host).then(pl.lit("host")).otherwise(pl.col("kind").fill_null("compute"))
    time = pl.when(on_host).then(pl.coalesce("self_ns", "total_ns")).otherwise("total_ns")
    rows = known.join(first, on=["rank", "unit"], nulls_equal=True)
    return rows.with_columns(pl.col("count").fill_null(0), kind=kind, total_ns=time).select(_RAW)
