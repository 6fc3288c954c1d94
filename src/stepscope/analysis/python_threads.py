"""Which threads of a rank ran Python functions that were recorded."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.errors import Unavailable

NO_FUNCTIONS = "no Python functions were recorded: record with `--stacks` (with_stack=True)"


@analysis("rank")
def python_threads(slices: pl.LazyFrame | None) -> pl.DataFrame:
    """Find the threads of which Python functions were recorded.

    What is about functions asks this first, since most recordings have none, and the rest takes long to find out.

    Returns:
        `rank`, `process`, `thread`, in order.

    Raises:
        Unavailable: If no Python functions were recorded.
    """
    found = None if slices is None else slices.filter(pl.col("category") == "python")
    if found is None or found.select("category").head(1).collect().is_empty():
        raise Unavailable(NO_FUNCTIONS)
    places = found.filter(pl.col("duration_ns") > 0).select("rank", "process", "thread").unique()
    return places.sort("rank", "process", "thread", nulls_last=True).collect()
