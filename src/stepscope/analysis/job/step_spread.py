"""How long each step took on its ranks, from the shortest to the longest."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_COLUMNS = columns(
    "step",
    Column("ranks", "int64", "Number of ranks that recorded it."),
    Column("min_ns", "int64", "Length on the rank where it is shortest."),
    Column("median_ns", "int64", "Median of the ranks; of an even number the lower one."),
    Column("max_ns", "int64", "Length on the rank where it is longest."),
    Column("max_rank", "int32", "That rank; of several, the lowest."),
    Column("is_outlier", "bool", "True for a step that takes far longer than others (`outlier_steps`)."),
    Column("kind", "string", "What most of its extra time is spent on (`outlier_steps`); null for other steps."),
    nulls="kind",
)


@analysis("job", _COLUMNS)
def step_spread(
    step_lengths: pl.DataFrame | None, rank_steps: pl.DataFrame | None, outlier_steps: pl.DataFrame | None
) -> pl.DataFrame:
    """Sum up the lengths of each step over its ranks (`step_lengths`, else as the source states them): one row a step.

    Raises:
        Unavailable: If no step is known.
    """
    if step_lengths is not None and step_lengths.height:
        lengths = step_lengths.select("rank", "step", length_ns="window_ns")
    elif rank_steps is not None:
        lengths = rank_steps.select("rank", "step", length_ns="step_ns").drop_nulls()
    else:
        raise Unavailable("no steps were recorded, neither by a timeline nor in a step table")
    ordered = lengths.sort("step", -pl.col("length_ns"), "rank").group_by("step", maintain_order=True)
    found = ordered.agg(
        ranks=pl.len().cast(pl.Int64),
        min_ns=pl.col("length_ns").min(),
        median_ns=pl.col("length_ns").quantile(0.5, "lower").cast(pl.Int64),
        max_ns=pl.col("length_ns").first(),
        max_rank=pl.col("rank").first(),
    )
    kinds = {} if outlier_steps is None else dict(outlier_steps.select("step", "kind").iter_rows())
    kind = pl.col("step").replace_strict(list(kinds), list(kinds.values()), default=None, return_dtype=pl.String)
    return found.with_columns(is_outlier=pl.col("step").is_in(list(kinds)), kind=kind).select(names(_COLUMNS))
