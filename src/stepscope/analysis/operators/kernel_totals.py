"""Which device kernels take the time, by name; which framework operators take the host's time, and the device time that
they launch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.launched_work import launching
from stepscope.analysis.methods.statistics import grouped, share
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column


@analysis(
    "rank",
    columns(
        "rank kind",
        meaning("name", "Name of the kernel."),
        "type core count total_ns mean_ns min_ns median_ns p95_ns max_ns",
        meaning("share_ratio", "Share of all device work of the rank."),
        nulls="type core",
    ),
    together=True,
)
def kernel_totals(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up device work: one row per kernel name, type and core, longest total first."""
    keys = ["rank", "kind", "name", "type", "core"]
    sums = grouped(batches(kernels.select(*keys, "duration_ns")), keys).with_columns(share())
    return sums.sort("rank", -pl.col("total_ns"), *keys[1:], nulls_last=True)


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
    """Sum up host operators by name, longest self time first.

    Device time is that of the kernels launched by the operator itself (by external id), not by its children.
    """
    keys = ["rank", "name"]
    rows = operators.select(*keys, "duration_ns", "self_ns")
    return (
        grouped(batches(rows), keys, "self_ns")
        .join(_device_times(operators, kernels), on=keys, how="left", maintain_order="left")
        .with_columns(share("self_ns"))
        .sort("rank", -pl.col("self_ns"), "name")
    )


def _device_times(operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """`device_ns` by `rank` and `name` of the operators that launched any kernels."""
    keys, total = ["rank", "name"], pl.col("device_ns").sum()
    parts = [batch.group_by(keys).agg(total) for batch in launching(operators, kernels, "name")]
    return pl.concat(parts).group_by(keys).agg(total)
