"""Device work by the host operators and ranges that launched it."""

from __future__ import annotations

import polars as pl


def with_device_time(counted: pl.DataFrame, operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Add `device_ns`, the time of all device work launched by an operator and its callees.

    The operators must not call each other.

    Args:
        counted: `rank`, `slice`, `thread`, `start_ns`, `duration_ns` and more.
        operators: All operators, to which kernels refer by external id.
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


def launch_times(kernels: pl.LazyFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """When the host requested each kernel: when its operator began, else when it was launched.

    A launch may come after its operator if another thread makes it (Ascend's task queue).

    Returns:
        `rank`, `at_ns`, `start_ns`, `end_ns` of each kernel with a known request, in order of `at_ns`.
    """
    rows = kernels.select(
        *("rank", "external_id", "launch_start_ns", "start_ns"), end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    if operators is None:
        asked = rows.with_columns(at_ns="launch_start_ns")
    else:
        began = (
            operators.filter(pl.col("external_id").is_not_null())
            .group_by("rank", "external_id")
            .agg(operator_ns=pl.col("start_ns").min())
        )
        joined = rows.join(began, on=["rank", "external_id"], how="left")
        asked = joined.with_columns(at_ns=pl.coalesce("operator_ns", "launch_start_ns"))
    return asked.select("rank", "at_ns", "start_ns", "end_ns").drop_nulls().sort("rank", "at_ns").collect()


def launched_within(ranges: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """From the first start to the last end of the kernels requested in each of some disjoint host ranges.

    Args:
        ranges: `rank`, `start_ns`, `end_ns`.
        launches: See `launch_times`.

    Returns:
        `rank`, `start_ns`, `end_ns` for each range that requested any.
    """
    bounds = ranges.sort("rank", "start_ns").select("rank", at_ns="start_ns", over_ns="end_ns").with_row_index("range")
    return (
        launches.join_asof(bounds, on="at_ns", by="rank", check_sortedness=False)
        .filter(pl.col("at_ns") < pl.col("over_ns"))
        .group_by("rank", "range")
        .agg(start_ns=pl.col("start_ns").min(), end_ns=pl.col("end_ns").max())
        .sort("rank", "start_ns")
        .select("rank", "start_ns", "end_ns")
    )
