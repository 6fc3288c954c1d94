"""Whether there are ranks to compare."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.job.comparable import TOO_FEW
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable


@analysis("job", columns("rank"), whole_job=True)
def several_ranks(ranks: pl.LazyFrame) -> pl.DataFrame:
    """The recorded ranks of a job that has several: the first that comparisons ask for, as it costs nothing.

    Raises:
        Unavailable: If there are fewer than two.
    """
    found = ranks_of(ranks)
    if len(found) < 2:
        raise Unavailable(TOO_FEW)
    return pl.DataFrame({"rank": found}, schema={"rank": pl.Int32})
