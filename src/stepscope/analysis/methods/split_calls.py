"""Calls that split their payload among the ranks of their group (all-to-all), as they are matched across ranks."""

from __future__ import annotations

import polars as pl

NUMBER = r"\d+"
"""A number of a list of splits as recorded, e.g. of `[10, 30]`."""


def split_calls(arrival: pl.DataFrame, splits: pl.LazyFrame) -> pl.LazyFrame:
    """The calls of each rank with their recorded splits.

    Positions in the group are those of `arrival`: a recording may begin some calls later than the others, so the number
    that a rank itself gives to a call may be that of another call on other ranks.

    Args:
        arrival: The analysis.
        splits: The table `collective_splits`.

    Returns:
        `arrival` with `input_splits` and `output_splits`, in no order.
    """
    said = splits.select("rank", "collective", "input_splits", "output_splits")
    return arrival.lazy().join(said, on=["rank", "collective"])


def listed(side: str) -> pl.Expr:
    """The numbers of a list of splits; none if the call splits its payload evenly."""
    return pl.col(side).str.extract_all(NUMBER).list.eval(pl.element().cast(pl.Int64))
