"""The scopes in the names of operators as bars, a level after the other."""

from __future__ import annotations

import polars as pl

SCOPES = {"level": pl.Int64, "name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
MAX_LEVELS = 64


def scopes(operators: pl.DataFrame) -> pl.DataFrame:
    """The scopes in the full names of operators, of the thread that ran most of them, as bars: from the first to the
    last operator in a row that lies in the scope.

    Args:
        operators: `full_name`, `thread`, `start_ns`, `duration_ns`, in order of time.

    Returns:
        `level` (0 is outermost), `name`, `start_ns`, `end_ns`, by level and time.
    """
    empty = pl.DataFrame(schema=SCOPES)
    if operators.is_empty():
        return empty
    busiest = operators["thread"].value_counts(sort=True)["thread"][0]
    parts = operators.filter(pl.col("thread").eq_missing(busiest)).select(
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        parts=pl.col("full_name").str.split("/").list.head(pl.col("full_name").str.count_matches("/")),
    )
    depth = min(int(parts["parts"].list.len().max() or 0), MAX_LEVELS)  # type: ignore[arg-type]
    return pl.concat([empty, *(_level(parts, level) for level in range(depth))])


def _level(parts: pl.DataFrame, level: int) -> pl.DataFrame:
    prefix = parts.with_columns(
        path=pl.when(pl.col("parts").list.len() > level).then(pl.col("parts").list.head(level + 1).list.join("/"))
    )
    return (
        prefix.with_columns(run=pl.col("path").rle_id())
        .filter(pl.col("path").is_not_null())
        .group_by("run", maintain_order=True)
        .agg(
            pl.lit(level, pl.Int64).alias("level"),
            pl.col("parts").first().list.get(level).alias("name"),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
        )
        .select(list(SCOPES))
    )
