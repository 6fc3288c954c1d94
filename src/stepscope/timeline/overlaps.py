"""When ranks were computing, communicating, communicating alone, or neither."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.intervals import union
from stepscope.analysis.step.activity import split

OVERLAPS: dict[str, pl.Expr] = {
    "computing": pl.col("computing"),
    "communication_alone": pl.col("communication") & ~pl.col("computing"),
    "communication": pl.col("communication"),
    "free": ~(pl.col("computing") | pl.col("communication")),
}


def overlaps(activity: pl.DataFrame, windows: pl.LazyFrame) -> dict[str, pl.DataFrame]:
    """The ranges (`rank`, `start_ns`, `end_ns`) in which each of `OVERLAPS` holds.

    Args:
        activity: What the ranks were doing when.
        windows: Where to look, as for `split`.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    cut = split(activity, windows).with_columns(end_ns=end).collect().lazy()
    return {part: union(cut.filter(where), by=["rank"]).collect() for part, where in OVERLAPS.items()}
