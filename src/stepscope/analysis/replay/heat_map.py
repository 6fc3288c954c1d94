"""Where a job loses time: how much longer each rank is busy in each step than comparable ranks."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.own_times import KINDS
from stepscope.limits import limit
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    meaning("kind", "Kind of work at which it loses most; null if at none.", values=KINDS),
    Column("own_ns", "int64", "Time that it is busy with its own work, all kinds together."),
    Column("typical_ns", "int64", "Time that this usually takes on comparable ranks in this step."),
    Column("excess_ns", "int64", "`own_ns` minus `typical_ns`; negative if it is faster."),
    Column("excess_ratio", "float64", "`excess_ns` over `typical_ns`."),
    Column("clear_ns", "int64", "Excess of those kinds of work in which it is beyond the noise of ordinary ranks."),
    Column("clear_ratio", "float64", "`clear_ns` over `typical_ns`."),
    nulls="kind typical_ns excess_ns excess_ratio clear_ns clear_ratio",
)


@dataclass(frozen=True)
class Limits:
    """What is beyond noise."""

    score: float = limit(3.0, "times the noise of an ordinary rank's excess in a step", "three standard deviations")


@analysis("job", COLUMNS, whole_job=True, across_steps=True)
def heat_map(excess: pl.DataFrame, compared_ranks: pl.DataFrame | None, limits: Limits = Limits()) -> pl.DataFrame:
    """Sum each rank's excess over all kinds of its own work: one row per rank and step, in order.

    Of ranks that cannot be compared (`compared_ranks`), only their own time is known. Waiting for other ranks is
    nobody's own work, so what a slow rank costs the others is not counted with them.
    """
    if compared_ranks is not None:
        compared = pl.col("rank").is_in(compared_ranks.filter("is_compared")["rank"].implode())
        excess = excess.with_columns(pl.when(compared).then("excess_ns").alias("excess_ns"))
    known = pl.col("excess_ns").is_not_null()
    most = pl.col("excess_ns").fill_null(0)
    clear = most > limits.score * pl.col("sigma_ns").fill_null(0.0)
    sums = excess.sort("rank", "step", "kind").group_by("rank", "step", maintain_order=True)
    found = sums.agg(
        # Of kinds beyond noise, if there are any.
        kind=pl.when(most.max() > 0).then(pl.col("kind").sort_by(~clear, -most, "kind").first()),
        own_ns=pl.col("own_ns").sum(),
        typical_ns=pl.when(known.any()).then(pl.col("own_ns").sum() - pl.col("excess_ns").sum()),
        excess_ns=pl.when(known.any()).then(pl.col("excess_ns").sum()),
        clear_ns=pl.when(known.any()).then(most.filter(clear).sum()),
    )
    over_typical = pl.when(pl.col("typical_ns") > 0).then(pl.col("excess_ns", "clear_ns") / pl.col("typical_ns"))
    return found.with_columns(over_typical.name.map(lambda name: name.replace("_ns", "_ratio"))).select(names(COLUMNS))
