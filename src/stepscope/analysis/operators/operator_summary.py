"""Which framework operators cost the host's time, and the device time that they launch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.statistics import duration_statistics, grouped, row_count, share, sum_known
from stepscope.analysis.registry import analysis


@analysis("rank", together=True)
def operator_summary(operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum up host operators by name.

    Device time is that of the kernels whose launch the operator itself made (by external id), without its
    children's.

    Returns:
        `rank`, `name`, the statistics of the total host time, `self_ns`, `device_ns` (null without device work)
        and `share_ratio` of the rank's self time, longest self time first.
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
