"""Which of the recorded ranks can be compared with others."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.job.comparable import comparable
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.tables.base import Column


@analysis(
    "job",
    columns("rank", Column("is_compared", "bool", "Whether its recording is complete enough to compare it."), nulls=""),
    whole_job=True,
)
def compared_ranks(
    excess: pl.DataFrame, arrival: pl.DataFrame | None, ranks: pl.LazyFrame, steps: pl.LazyFrame
) -> pl.DataFrame:
    """List all recorded ranks and whether they can be compared (`comparable`): one row each, in order.

    A rank without marked steps, device work or most of the calls that others have can be neither slow nor healthy.

    Raises:
        Unavailable: If fewer than two ranks can be compared, or the ranks do not belong together.
    """
    compared = comparable(excess, steps, arrival, ranks)["rank"].unique()
    every = pl.Series("rank", ranks_of(ranks), dtype=pl.Int32)
    return pl.DataFrame({"rank": every, "is_compared": every.is_in(compared.implode())})
