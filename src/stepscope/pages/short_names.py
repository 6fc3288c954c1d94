"""Short names of kernels and operators, for tables on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

DEEPEST = 12
"""Template arguments inside one another that are left out."""

_AUTOGRAD = "autograd::engine::evaluate_function: "


def short(column: str) -> pl.Expr:
    """Names, or sequences of them, without template arguments, parameters and namespaces: `gemm -> add x2`."""
    import polars as pl

    text = (
        pl.col(column)
        .str.replace_all(r" \(x(\d+)\)", " x$1")
        .str.replace_all("(anonymous namespace)::", "", literal=True)
    )
    for _ in range(DEEPEST):
        text = text.str.replace_all(r"<[^<>]*>", "").str.replace_all(r"\([^()]*\)", "")
    plain = text.str.replace_all(r"\bvoid ", "").str.replace_all(r"\w+::", "").str.strip_chars()
    return pl.when(plain != "").then(plain).otherwise(column).alias(column)


def short_operator(column: str) -> pl.Expr:
    """Operators without autograd's prefix, which hides the name of the operator."""
    import polars as pl

    return pl.col(column).str.strip_prefix(_AUTOGRAD)
