"""What Python's garbage collection costs in each step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.stopping_calls import COLUMNS, stopping_calls
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

NO_COLLECTIONS = "no garbage collection was recorded"


@analysis("rank", COLUMNS, together=True, nothing=NO_COLLECTIONS)
def garbage_collections(
    slices: pl.LazyFrame,
    idle_pieces: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up the recorded garbage collections of Python: one row per rank and step, in order.

    Raises:
        Unavailable: If none was recorded.
    """
    found = stopping_calls(slices, pl.col("category") == "gc", idle_pieces, operators, stacks)
    if found.is_empty():
        raise Unavailable(NO_COLLECTIONS)
    return found
