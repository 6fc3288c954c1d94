"""For which ranks most of a job waits."""

from __future__ import annotations

import polars as pl

MOST = 0.8
"""Share of the waiting that the ranks that are named cause together."""


def late_ranks(waits: pl.DataFrame, ranks: int) -> list[int]:
    """The ranks at the ends of the chains of waiting that cause most of it, in order; none if that takes more than a
    quarter of all ranks.

    Args:
        waits: The answer of that name, about all ranks.
        ranks: How many ranks there are.
    """
    waited = waits.group_by("root_rank").agg(pl.col("mean_ns").sum()).sort(-pl.col("mean_ns"), "root_rank")
    until = pl.col("mean_ns").cum_sum()
    late = waited.filter((pl.col("mean_ns") > 0) & (until - pl.col("mean_ns") < MOST * pl.col("mean_ns").sum()))
    found: list[int] = sorted(late["root_rank"])
    return found if len(found) <= max(1, ranks // 4) else []
