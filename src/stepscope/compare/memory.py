"""How much more or less memory the new side needs."""

from __future__ import annotations

from typing import Literal

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

PEAK, RESERVED, ALLOCATED = "peak", "reserved peak", "allocated in a step"
FIGURES = (PEAK, RESERVED, ALLOCATED)
"""The most that a rank uses at once, that its allocator holds, and what operators allocate, mean of the ranks."""

COLUMNS = columns(
    Column("figure", "string", "What is compared.", values=FIGURES),
    Column("name", "string", "Allocator, or the operator that allocates; null for the framework's own allocator."),
    Column("base_bytes", "int64", "On the base; of peaks, the rank that needs most.", title="base"),
    Column("new_bytes", "int64", "On the new side.", title="new"),
    Column("difference_bytes", "int64", "`new_bytes` less `base_bytes`.", title="difference"),
    Column("change_factor", "float64", "`new_bytes` over `base_bytes`; null if the base has none.", title="change"),
    Column("verdict", "string", "Not tested over steps.", values=("same", "untested", "added", "removed")),
    nulls="name change_factor",
    keep="figure name difference_bytes change_factor new_bytes base_bytes",
)


@comparison(COLUMNS)
def memory_differences(
    memory_peak: Sides | None, side_allocations: Sides | None, side_steps: Sides | None, limits: Limits = LIMITS
) -> pl.DataFrame:
    """Compare peaks of memory, and what operators allocate: peaks first, then the largest difference.

    An allocator of which one side records no peak is left out.

    Raises:
        Unavailable: If no memory was recorded on a side.
    """
    if memory_peak is None and side_allocations is None:
        raise Unavailable("memory was not recorded on both sides")
    found = []
    for figure, column in ((PEAK, "peak_bytes"), (RESERVED, "reserved_peak_bytes")):
        if memory_peak is not None:
            tops = [
                side.filter(pl.col(column).is_not_null()).group_by(name="component").agg(bytes=pl.col(column).max())
                for side in memory_peak
            ]
            found.append(_joined(figure, tops[0], tops[1], limits, how="inner"))
    if side_allocations is not None and side_steps is not None:
        sums = [
            side.select("name", bytes=(pl.col("size_bytes") / max(steps["step"].n_unique(), 1)).round().cast(pl.Int64))
            for side, steps in zip(side_allocations, side_steps, strict=True)
        ]
        found.append(_joined(ALLOCATED, sums[0], sums[1], limits))
    return pl.concat(found).select(names(COLUMNS))


def _joined(
    figure: str, base: pl.DataFrame, new: pl.DataFrame, limits: Limits, how: Literal["inner", "full"] = "full"
) -> pl.DataFrame:
    both = base.join(new, on="name", how=how, coalesce=True, nulls_equal=True)
    of_base, of_new = pl.col("bytes").fill_null(0), pl.col("bytes_right").fill_null(0)
    same = (of_new - of_base).abs() <= limits.same_ratio * of_base
    verdict = (
        pl.when(pl.col("bytes").is_null())
        .then(pl.lit("added"))
        .when(pl.col("bytes_right").is_null())
        .then(pl.lit("removed"))
        .when(same)
        .then(pl.lit("same"))
        .otherwise(pl.lit("untested"))
    )
    return both.select(
        "name",
        figure=pl.lit(figure),
        base_bytes=of_base,
        new_bytes=of_new,
        difference_bytes=of_new - of_base,
        change_factor=pl.when(of_base > 0).then(of_new / of_base),
        verdict=verdict,
    ).sort(-pl.col("difference_bytes").abs(), "name", nulls_last=True)
