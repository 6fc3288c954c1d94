"""What communication costs, by group, operation and size, split into waiting and transmission."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.statistics import duration_statistics, sum_known
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column


@analysis(
    "job",
    columns(
        "group group_name operation size_bytes",
        Column("ranks", "int32", "Number of recorded ranks.", importance=54),
        "count total_ns mean_ns min_ns median_ns p95_ns max_ns",
        meaning("wait_ns", "Total waiting time over ranks; null if unknown."),
        meaning("transmit_ns", "Total transmission time over ranks; null if unknown."),
        meaning("wait_ratio", "`wait_ns` over `wait_ns + transmit_ns`."),
        Column(
            "bandwidth_bytes_per_s",
            "float64",
            "A rank's payload, as recorded, over the median of all ranks' transmissions; algorithm bandwidth is in "
            "`bus_bandwidth`.",
            title="payload rate",
            importance=55,
        ),
        nulls="group group_name size_bytes wait_ns transmit_ns wait_ratio bandwidth_bytes_per_s",
    ),
)
def communication(arrival: pl.DataFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum up communication calls over ranks and steps: one row per group, operation and size, longest total first.

    Statistics are of the durations of all ranks' calls.
    """
    known = pl.col("wait_ns") + pl.col("transmit_ns")
    per_second = pl.col("size_bytes") / (pl.col("transmit_median_ns") / 1e9)
    return (
        arrival.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
        .group_by("group", "operation", "size_bytes")
        .agg(
            pl.col("rank").n_unique().cast(pl.Int32).alias("ranks"),
            *duration_statistics(),
            sum_known("wait_ns"),
            sum_known("transmit_ns"),
            pl.col("transmit_ns").median().alias("transmit_median_ns"),
        )
        .with_columns(
            wait_ratio=pl.when(known > 0).then(pl.col("wait_ns") / known),
            bandwidth_bytes_per_s=pl.when(pl.col("transmit_median_ns") > 0).then(per_second),
        )
        .join(group_names(groups), on="group", how="left")
        .select("group", "group_name", pl.exclude("group", "group_name", "transmit_median_ns"))
        .sort("total_ns", "operation", "size_bytes", "group", descending=[True, False, False, False], nulls_last=True)
    )
