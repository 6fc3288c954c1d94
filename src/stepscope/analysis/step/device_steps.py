"""Which steps a table of the device states."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable


@analysis("job", columns("rank step", nulls=""))
def device_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """Find the steps that a step table of the device states, rather than a timeline.

    What is about these alone asks this first: most recordings have none, and the rest takes long to find out.

    Returns:
        One row a step, in order.

    Raises:
        Unavailable: If there are none.
    """
    found = steps.filter(pl.col("window") == "stated").select("rank", "step").sort("rank", "step").collect()
    if found.is_empty():
        raise Unavailable("no step table of a device was recorded")
    return found
