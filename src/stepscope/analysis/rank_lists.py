"""Several ranks in one cell of an answer, as text, e.g. `0, 1, 5`."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

_BETWEEN = ", "


def rank_list(ranks: Iterable[int]) -> str:
    """The text of some ranks, in their order."""
    return _BETWEEN.join(map(str, ranks))


def listed(text: str) -> list[int]:
    """The ranks of a text.

    Examples:
        >>> listed("0, 1, 5")
        [0, 1, 5]
    """
    return [int(rank) for rank in text.split(_BETWEEN)]


def accused(slow: pl.DataFrame | None) -> list[int]:
    """All ranks that rows of an answer list in column `ranks`, in order, e.g. those that `slow_ranks` names.

    Args:
        slow: The answer; None, which has no ranks, if there is none. Rows without ranks count for nothing.
    """
    return [] if slow is None else sorted({rank for text in slow["ranks"].drop_nulls() for rank in listed(text)})


def as_rank_list(ranks: pl.Expr) -> pl.Expr:
    """The text of the different ranks of a group of rows, lowest first."""
    return ranks.unique().sort().cast(pl.String).str.join(_BETWEEN)


def listed_ranks() -> pl.Expr:
    """The ranks of the texts in column `ranks`, each a list of Int32."""
    return pl.col("ranks").str.split(_BETWEEN).cast(pl.List(pl.Int32))
