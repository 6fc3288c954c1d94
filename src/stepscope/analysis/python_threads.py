"""Which threads of a rank ran Python functions that were recorded."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.errors import Unavailable


@analysis("rank")
def python_threads(slices: pl.LazyFrame) -> pl.DataFrame:
    """Find the threads of which Python functions were recorded.

    What is about functions asks this first, since most recordings have none, and the rest takes long to find out.

    Returns:
        `rank`, `process`, `thread`, in order.

    Raises:
        Unavailable: If no Python functions were recorded.
    """
    found = slices.filter(pl.col("category") == "python")
    if found.select("category").head(1).collect().is_empty():
        raise Unavailable("no Python functions were recorded: record with `--stacks` (with_stack=True)")
    places = found.filter(pl.col("duration_ns") > 0).select("rank", "process", "thread").unique()
    return places.sort("rank", "process", "thread", nulls_last=True).collect()
