"""When a rank was computing, communicating, both or neither: rows that all timelines have, each under its own names."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.intervals import union
from stepscope.analysis.step.activity import split

PARTS: dict[str, pl.Expr] = {
    "computing": pl.col("computing"),
    "communication_alone": pl.col("communication") & ~pl.col("computing"),
    "communication": pl.col("communication"),
    "free": ~(pl.col("computing") | pl.col("communication")),
}


def overlaps(activity: pl.DataFrame, windows: pl.LazyFrame) -> dict[str, pl.DataFrame]:
    """The stretches (`start_ns`, `end_ns`) of one rank in which each of `PARTS` holds.

    Args:
        activity: What the rank was doing when.
        windows: Where to look, as for `split`.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    cut = split(activity, windows).with_columns(end_ns=end).collect().lazy()
    return {part: union(cut.filter(where)).collect() for part, where in PARTS.items()}
