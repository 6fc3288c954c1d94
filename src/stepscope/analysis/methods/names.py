"""Questions about the names of operators, asked once for each name: there are far fewer names than operators."""

from __future__ import annotations

import polars as pl


def named(rows: pl.LazyFrame, **questions: pl.Expr) -> dict[str, pl.Expr]:
    """Conditions on single names, e.g. patterns, as faster ones for the same rows.

    Args:
        rows: A table with `name`.
        **questions: Conditions that depend on `name` only.

    Returns:
        By the same keys, whether the name is one of those that meet the condition; null for a null name.
    """
    names = rows.select("name").drop_nulls().unique().collect(engine="streaming")
    return {key: pl.col("name").is_in(names.filter(asked)["name"].implode()) for key, asked in questions.items()}
