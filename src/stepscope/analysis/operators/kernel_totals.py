"""Which device kernels cost the time, by name, by operator type and by core."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.statistics import duration_statistics, grouped, row_count, share
from stepscope.analysis.registry import analysis


@analysis("rank", together=True)
def kernel_totals(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up device work by kernel name.

    Returns:
        `rank`, `kind`, `name`, `type`, `core`, the statistics of `duration_statistics` and `share_ratio` of all
        device work of the rank, longest total first.
    """
    return _totals(kernels, ["rank", "kind", "name", "type", "core"])


@analysis("rank", together=True)
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
