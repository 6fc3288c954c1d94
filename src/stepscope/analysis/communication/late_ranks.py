"""For which ranks most of a job waits."""

from __future__ import annotations

import polars as pl

MOST = 0.8
"""Share of the waiting that the ranks that are named cause together."""

BESIDE = 0.1
"""Share of what the first of them causes below which another is not named, chosen by us: several may cause as little,
and only some would be needed."""


def late_ranks(waits: pl.DataFrame, ranks: int) -> list[int]:
    """The ranks at the ends of the chains of waiting that cause most of it, in order; none if that takes more than a
    quarter of all ranks.

    Args:
        waits: The answer of that name, about all ranks.
        ranks: How many ranks there are.
    """
    waited = waits.group_by("root_rank").agg(pl.col("mean_ns").sum()).sort(-pl.col("mean_ns"), "root_rank")
    until = pl.col("mean_ns").cum_sum()
    needed = until - pl.col("mean_ns") < MOST * pl.col("mean_ns").sum()
    late = waited.filter((pl.col("mean_ns") > 0) & needed & (pl.col("mean_ns") >= BESIDE * pl.col("mean_ns").max()))
    found: list[int] = sorted(late["root_rank"])
    return found if len(found) <= max(1, ranks // 4) else []
