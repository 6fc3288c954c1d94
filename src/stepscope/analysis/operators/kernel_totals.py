"""Which device kernels take the time, by name, operator type and core."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import duration_statistics, grouped, row_count, share
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
    """Sum up device work by kernel name.

    Returns:
        One row per name, type and core, longest total first.
    """
    return _totals(kernels, ["rank", "kind", "name", "type", "core"])


@analysis(
    "rank",
    columns(
        "rank kind",
        Column("type", "string", "Operator type; null if not recorded."),
        "core count total_ns mean_ns min_ns median_ns p95_ns max_ns",
        meaning("share_ratio", "Share of all device work of the rank."),
        nulls="type core",
    ),
    together=True,
)
def kernel_type_totals(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up device work by operator type and core, as `kernel_totals` does by name."""
    return _totals(kernels, ["rank", "kind", "type", "core"])


def _totals(kernels: pl.LazyFrame, keys: list[str]) -> pl.DataFrame:
    return (
        grouped(kernels, keys, duration_statistics(), row_count(kernels))
        .with_columns(share())
        .sort(
            "rank",
            "total_ns",
            *keys[1:],
            descending=[False, True] + [False] * (len(keys) - 1),
            nulls_last=True,
        )
    )
