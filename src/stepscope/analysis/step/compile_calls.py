"""Calls that compile operators as they are launched."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.stopping_calls import COLUMNS, stopping_calls
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.marks import COMPILE_CALLS
from stepscope.errors import Unavailable

NO_CALLS = "no call that compiles operators was recorded"


@analysis("rank", COLUMNS, together=True, nothing=NO_CALLS)
def compile_calls(
    slices: pl.LazyFrame,
    idle_pieces: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up the host's calls that compile operators as they are launched: one row per rank, step and name, in order.

    Raises:
        Unavailable: If there are none.
    """
    calls = slices.filter(pl.col("category") == "runtime")
    wanted = named(calls, compiles=pl.col("name").str.contains(COMPILE_CALLS))["compiles"]
    found = stopping_calls(slices, (pl.col("category") == "runtime") & wanted, idle_pieces, operators, stacks)
    if found.is_empty():
        raise Unavailable(NO_CALLS)
    return found
