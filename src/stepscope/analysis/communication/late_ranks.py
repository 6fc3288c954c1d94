"""For which ranks most of a job waits."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

MOST = 0.8
"""Share of the waiting that the ranks that are named cause together."""

BESIDE = 0.1
"""Share of what the first of them causes below which another is not named, chosen by us: several may cause as little,
and only some would be needed."""


def lateness(waits: pl.DataFrame, places: pl.DataFrame | None, slow: Collection[int] = ()) -> pl.DataFrame:
    """The rows of `waits` that show who is late: of a pipeline, stages wait for one another as its schedule asks for,
    so waits between them count only where they are mostly for ranks that are known to be slow.

    Args:
        waits: The answer of that name, about all ranks.
        places: `pipeline_places`, if there are stages.
        slow: Ranks that are slow by `slow_ranks`.
    """
    if places is None or waits.is_empty():
        return waits
    late = late_ranks(waits, waits["rank"].n_unique())
    if late and set(late) <= set(slow):
        return waits
    stages = places.select("rank", "stage")
    both = waits.join(stages, on="rank", how="left", maintain_order="left").join(
        stages.rename({"rank": "for_rank", "stage": "for_stage"}), on="for_rank", how="left", maintain_order="left"
    )
    return waits.filter(both["stage"].eq_missing(both["for_stage"]))


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
