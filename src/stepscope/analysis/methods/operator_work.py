"""The device time of host operators that are counted: that of all work launched by them or by those they call."""

from __future__ import annotations

import polars as pl


def with_device_time(counted: pl.DataFrame, operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Add `device_ns` to operators that do not call each other.

    Args:
        counted: `rank`, `slice`, `thread`, `start_ns`, `duration_ns` and more.
        operators: All operators, which kernels name by external id.
        kernels: Device work.

    Returns:
        The operators with `device_ns`; null without any device work.
    """
    if kernels is None:
        return counted.with_columns(device_ns=pl.lit(None, pl.Int64))
    launched = (
        kernels.filter(pl.col("external_id").is_not_null())
        .group_by("rank", "external_id")
        .agg(device_ns=pl.col("duration_ns").sum())
    )
    launchers = (
        operators.join(launched, on=["rank", "external_id"])
        .select("rank", "thread", "start_ns", "device_ns")
        .sort("start_ns", "thread")
        .collect()
    )
    bounds = counted.select(
        *("rank", "thread", "start_ns", "slice"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    ).sort("start_ns", "slice")
    owned = (
        launchers.join_asof(bounds, on="start_ns", by=["rank", "thread"], check_sortedness=False)
        .filter(pl.col("start_ns") <= pl.col("end_ns"))
        .group_by("rank", "slice")
        .agg(pl.col("device_ns").sum())
    )
    return counted.join(owned, on=["rank", "slice"], how="left")
