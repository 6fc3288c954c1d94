"""How often operators ran, for lists with average times only, as in 1.0."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.values import whole

_MS_NS = 1e6


def known_counts(path: Path, rows: pl.DataFrame, types: pl.DataFrame | None, sink: Sink) -> pl.DataFrame:
    """Rows with `count` and `total_ns`.

    Without a recorded count, all operators of a type are assumed to run equally often, by the list of types;
    an operator of no such type counts once.

    Args:
        path: The file, for notes.
        rows: Operators with `type`, `mean_ms`, and `count` if it is stated.
        types: The list of types: `type`, `count`; None if there is none.
        sink: Takes a note if counts are not recorded.
    """
    if "count" not in rows.columns:
        rows = _from_types(rows, types)
        lacking = rows.filter(pl.col("count").is_null()).height
        problem = "has average times only; counts of operators are taken from their types"
        if lacking:
            problem = f"{problem}, and {lacking} of {rows.height} without one are counted once"
        sink.issue("note", path, problem, "Nothing to do.", place="line 1")
        rows = rows.with_columns(count=pl.col("count").fill_null(1))
    return rows.with_columns(total_ns=whole(pl.col("mean_ms") * _MS_NS * pl.col("count")))


def _from_types(rows: pl.DataFrame, types: pl.DataFrame | None) -> pl.DataFrame:
    """Rows with `count`, null if unknown from the types."""
    if types is None:
        return rows.with_columns(count=pl.lit(None, pl.Int64))
    counts = types.group_by("type").agg(ran=pl.sum("count"))
    each = pl.col("ran") / pl.len().over("type")
    return (
        rows.join(counts, on="type", how="left", maintain_order="left")
        .with_columns(count=pl.when(each >= 1).then(whole(each)))
        .drop("ran")
    )
