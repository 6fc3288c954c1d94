"""How long each range was the innermost of its thread, also where ranges overlap without one holding the other."""

from __future__ import annotations

import polars as pl

from stepscope.sources.nesting import enclosing, time_in_children


def own_times(ranges: pl.DataFrame, parent: pl.Series | None = None) -> tuple[pl.Series, pl.Series]:
    """The time of each range outside of the ranges that begin in it, and the range in which it begins.

    A profiler's marks often begin inside a Python function that ends before they do, so unlike in `nest`, what a range
    takes beyond the end of its parent counts as inside the parent's parents.

    Args:
        ranges: `start_ns`, `duration_ns` and `thread` (any type; only equality counts).
        parent: The range in which each begins, if that is known, as of ranges that were cut since.

    Returns:
        `own_ns` and `parent` (row number; null at the top), in the rows' order.
    """
    if parent is None:
        parent = enclosing(ranges)["parent"]
    ends = ranges["start_ns"] + ranges["duration_ns"]
    spent = time_in_children(ranges, parent)
    rest = pl.DataFrame({"around": parent, "at": ends.gather(parent), "end": ends}).filter(pl.col("end") > pl.col("at"))
    while rest.height:
        above = parent.gather(rest["around"])
        rest = rest.with_columns(around=above, until=ends.gather(above)).drop_nulls("around")
        inside = (pl.min_horizontal("end", "until") - pl.col("at")).clip(lower_bound=0)
        more = rest.group_by("around").agg(ns=inside.sum())
        spent = spent.scatter(more["around"], spent.gather(more["around"]) + more["ns"])
        rest = rest.filter(pl.col("end") > pl.col("until")).with_columns(at=pl.max_horizontal("at", "until"))
    return (ranges["duration_ns"] - spent).clip(lower_bound=0).alias("own_ns"), parent
