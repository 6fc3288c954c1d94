"""How much time each type of operators takes over all ranks, also where only totals were recorded, and on which rank it
takes longest."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.statistics import rounded, share_of
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

COLUMNS = columns(
    "unit type",
    Column("ranks", "int32", "Number of ranks that have any.", importance=38),
    meaning("count", "Number of calls on all ranks; null if not recorded."),
    meaning("total_ns", "Total time on all ranks."),
    meaning("mean_ns", "Mean over all calls; null if their number is unknown."),
    Column("min_rank", "int32", "Rank with the shortest mean; of several, the lowest.", importance=23),
    Column("min_ns", "int64", "That mean.", title="least", importance=34),
    Column("max_rank", "int32", "Rank with the longest mean; of several, the lowest.", importance=37),
    Column("max_ns", "int64", "That mean.", title="most", importance=36),
    meaning("share_ratio", "Share of the time of its list on all ranks."),
    nulls="unit type count mean_ns min_rank min_ns max_rank max_ns share_ratio",
    keep="type total_ns unit share_ratio count mean_ns max_ns max_rank min_ns",
)


@analysis("job", COLUMNS)
def operator_type_ranks(operator_types: pl.DataFrame) -> pl.DataFrame:
    """Sum up `operator_types` of all ranks: one row per list and type, longest total first in each list."""
    keys = ["unit", "type"]
    mean, count = pl.col("mean_ns"), pl.col("count")
    known = operator_types.filter(pl.col("total_ns").is_not_null()).sort("rank")
    found = known.group_by(keys, maintain_order=True).agg(
        ranks=pl.col("rank").n_unique().cast(pl.Int32),
        count=pl.when(count.is_not_null().all()).then(count.sum()),
        total_ns=pl.col("total_ns").sum(),
        min_rank=pl.col("rank").get(mean.arg_min(), null_on_oob=True),
        min_ns=mean.min(),
        max_rank=pl.col("rank").get(mean.arg_max(), null_on_oob=True),
        max_ns=mean.max(),
    )
    return (
        found.with_columns(
            mean_ns=pl.when(count > 0).then(rounded(pl.col("total_ns") / count)),
            share_ratio=share_of(pl.col("total_ns"), "unit"),
        )
        .select(names(COLUMNS))
        .sort("unit", -pl.col("total_ns"), "type", nulls_last=True)
    )
