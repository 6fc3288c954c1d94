"""Which framework operators take the host's time, and the device time that they launch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import duration_statistics, grouped, row_count, share, sum_known
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column


@analysis(
    "rank",
    columns(
        "rank",
        meaning("name", "Name of the operator."),
        "count total_ns mean_ns min_ns median_ns p95_ns max_ns self_ns",
        Column("device_ns", "int64", "Time of the kernels that it launched directly; null without device work."),
        "share_ratio",
        nulls="device_ns",
    ),
    together=True,
)
def operator_summary(operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum up host operators by name.

    Device time is that of the kernels launched by the operator itself (by external id), not by its children.

    Returns:
        One row per name, longest self time first.
    """
    rows = operators.select("rank", "name", "duration_ns", "self_ns", "external_id")
    if kernels is None:
        rows = rows.with_columns(device_ns=pl.lit(None, pl.Int64))
    else:
        launched = (
            kernels.filter(pl.col("external_id").is_not_null())
            .group_by("rank", "external_id")
            .agg(device_ns=pl.col("duration_ns").sum())
            .collect()
        )
        rows = rows.join(launched.lazy(), on=["rank", "external_id"], how="left")
    statistics = [*duration_statistics(), pl.col("self_ns").sum(), sum_known("device_ns")]
    return (
        grouped(rows, ["rank", "name"], statistics, row_count(operators))
        .with_columns(share("self_ns"))
        .sort("rank", "self_ns", "name", descending=[False, True, False])
    )
