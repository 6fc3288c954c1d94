"""Which ranks light tracing recorded: it marks forward passes, but no backward passes and optimizers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_OTHERS = r"^(backward|optimizer|validation|warm_up)(: |$)"
"""Marks of phases other than forward passes."""


def marking_no_others(ranks: Sequence[int], slices: pl.LazyFrame | None) -> list[int]:
    """The ranks of which no phases other than forward passes are marked, sorted."""
    if not ranks or slices is None:
        return []
    of_ranks = slices.filter(pl.col("rank").is_in(list(ranks)), pl.col("category") == "annotation")
    others = of_ranks.filter(pl.col("name").str.contains(_OTHERS)).select("rank").unique().collect()
    return sorted({*ranks} - {*others["rank"].to_list()})


def mostly_unmarked(ranks: Sequence[int], slices: pl.LazyFrame | None) -> list[int]:
    """The ranks that light tracing alone recorded, sorted: what they do in backward passes and optimizers is
    unmarked."""
    if slices is None:
        return []
    other = slices.filter(pl.col("rank").is_in(list(ranks)), pl.col("category") != "annotation")
    of_more = other.select(pl.col("rank").unique()).collect()["rank"]
    return marking_no_others(sorted({*ranks} - {*of_more}), slices)
