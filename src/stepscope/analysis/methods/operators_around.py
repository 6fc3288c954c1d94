"""Which operator whose stack was recorded ran around a call of the host, also of a profiler's other process."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.intervals import END
from stepscope.tables import OPERATORS

MOST_PLACED = 30
"""Calls of a rank that are placed, the longest first: a report names a few."""


def call_places(
    calls: pl.DataFrame, slices: pl.LazyFrame | None, operators: pl.LazyFrame | None, stacks: pl.LazyFrame | None
) -> pl.DataFrame:
    """The line of the user's code that made each call, as recorded: `rank`, `slice`, `place`; only those known.

    Args:
        calls: `rank`, `slice`, `thread`, `at_ns` (a time inside the call), the longest first.
        slices, operators, stacks: The tables of these names.
    """
    wanted = calls.select("rank", "slice", "thread", "at_ns").group_by("rank", maintain_order=True).head(MOST_PLACED)
    around = _around(wanted.drop_nulls("thread"), operators).rename({"operator": "slice"})
    own = places(wanted, operators, stacks, slices).rename({"code": "place"})
    by_stack = places(around, operators, stacks, None).join(around, on=["rank", "slice"])
    found = by_stack.select("rank", pl.col("call").alias("slice"), stacked="code").unique(["rank", "slice"])
    return (
        wanted.select("rank", "slice")
        .join(own, on=["rank", "slice"], how="left")
        .join(found, on=["rank", "slice"], how="left")
        .select("rank", "slice", place=pl.coalesce("place", "stacked"))
        .drop_nulls("place")
    )


def _around(wanted: pl.DataFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """The operator with a stack that began last before each call and still runs: `rank`, `call`, `operator`."""
    moments = wanted.select(of_rank="rank", of_thread="thread", at_ns="at_ns", call="slice")
    known = OPERATORS.or_empty(operators).filter(pl.col("stack").is_not_null())
    near = known.filter(pl.col("rank").is_in(wanted["rank"].unique().implode()))
    parts = []
    for batch in batches(near.select("rank", "thread", "start_ns", "slice", end_ns=END)):
        around = batch.join_where(
            moments,
            pl.col("rank") == pl.col("of_rank"),
            pl.col("thread") == pl.col("of_thread"),
            pl.col("start_ns") <= pl.col("at_ns"),
            pl.col("end_ns") > pl.col("at_ns"),
        )
        parts.append(around.select("rank", "call", "start_ns", operator="slice"))
    order = pl.concat(parts).sort("rank", "call", -pl.col("start_ns"), "operator")
    return order.unique(["rank", "call"], keep="first", maintain_order=True).drop("start_ns")
