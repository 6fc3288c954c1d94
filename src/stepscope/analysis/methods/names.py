"""Questions about the names of operators, asked once for each name: there are far fewer names than operators."""

from __future__ import annotations

import polars as pl

NUMBERED = r"__\d+_\d+_\d+$"
"""End of names of HCCL calls, which number them."""

MATRIX = (
    r"(?i)gemm|matmul|(^|::|_)b?mm(\b|_)|addmm|linear|conv|attention|flash|cutlass|cublas|wgrad|dgrad|xmma|(16816|884)"
)
"""Names of kernels that mostly multiply matrices, so that clock and power decide how long they take."""


def unnumbered(name: str = "name") -> pl.Expr:
    """Names without the number of the call: the same for all calls of an operation."""
    return pl.col(name).str.replace(NUMBERED, "")


def named(rows: pl.LazyFrame, names: pl.DataFrame | None = None, **questions: pl.Expr) -> dict[str, pl.Expr]:
    """Conditions on single names, e.g. patterns, as faster ones for the same rows.

    Args:
        rows: A table with `name`.
        names: `names_of` the table or of one that contains it, if they are known.
        **questions: Conditions that depend on `name` only.

    Returns:
        By the same keys, whether the name is one of those that meet the condition; null for a null name.
    """
    every = names_of(rows) if names is None else names
    return {key: pl.col("name").is_in(every.filter(asked)["name"].implode()) for key, asked in questions.items()}


def names_of(rows: pl.LazyFrame) -> pl.DataFrame:
    """Each `name` of a table once."""
    return rows.select("name").drop_nulls().unique().collect(engine="streaming")
