"""The steps that a device's step table states."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable


@analysis("job", columns("rank step", nulls=""))
def device_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """Find the steps that come from a device's step table, not from a timeline.

    Asked first by rules about these steps only: most recordings have none, and the rest is slow to compute.

    Returns:
        One row per step, in order.

    Raises:
        Unavailable: If there are none.
    """
    found = steps.filter(pl.col("window") == "stated").select("rank", "step").sort("rank", "step").collect()
    if found.is_empty():
        raise Unavailable("no device step table was recorded")
    return found
