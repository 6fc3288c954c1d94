"""Which ranks are among the latest in nearly every step, however much their times vary from step to step.

Standard errors are of no use where a rank loses 0.2 s in one step and 0.8 s in the next: the more it varies, the less
it stands out. Healthy ranks change places instead, whatever the noise: in each step, any of them may be the latest.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.chance import chance_at_rate
from stepscope.analysis.methods.references import BY_RANK, BY_STEP, WORK


def chance_of_last(cells: pl.DataFrame, centres: pl.DataFrame) -> pl.DataFrame:
    """How likely it is that some rank is among the latest so often, if healthy ranks are equally likely to be.

    A rank counts as one of the latest in a step in which it is late by half of its median excess, if no more than a
    number of ranks are as late; the number, up to half of the ranks, is the one that is least likely by chance, and
    each of them is one more guess.

    Args:
        cells: `kind`, `peers`, `rank`, `step` and `excess_ns`, of all ranks that can be compared.
        centres: `kind`, `peers`, `rank` and `centre`: the median excess.

    Returns:
        One row per row of `centres`, in its order: `last_chance`; 1 if the rank is not above normal.
    """
    from_top = pl.col("excess_ns").rank("max", descending=True).over(BY_STEP)
    placed = cells.select(*BY_STEP, "rank", "excess_ns", from_top=from_top, ranks=pl.len().over(BY_STEP))
    late = placed.join(centres.select(*BY_RANK, "centre"), on=BY_RANK, nulls_equal=True).filter(
        pl.col("centre") > 0, 2 * pl.col("excess_ns") > pl.col("centre")
    )
    sizes = placed.group_by(WORK).agg(ranks=pl.col("ranks").max(), steps=pl.col("step").n_unique())
    listed = late.group_by(BY_RANK).agg("from_top").join(sizes, on=WORK, nulls_equal=True)
    chances = [_least(*row) for row in listed.select("from_top", "ranks", "steps").iter_rows()]
    found = listed.select(*BY_RANK, last_chance=pl.Series(chances, dtype=pl.Float64))
    return (
        centres.select(BY_RANK)
        .join(found, on=BY_RANK, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("last_chance").fill_null(1.0))
    )


def _least(places: list[int], ranks: int, steps: int) -> float:
    """The least likely of what places from the latest in some steps show, times the number of guesses."""
    guesses = range(1, ranks // 2 + 1)
    found = (chance_at_rate(sum(place <= most for place in places), steps, most / ranks) for most in guesses)
    return min(1.0, ranks * len(guesses) * min(found, default=1.0))
