"""Gaps that recur between the same work in most steps of a rank, and what they cost together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.step_windows import in_steps
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.gap_ends import PLACES
from stepscope.analysis.step.gaps import HOST, explained_gaps
from stepscope.limits import limit
from stepscope.selection import Choice
from stepscope.tables.base import Column

PLACE = ["rank", "before_name", "next_name"]
MOST = 20
"""Places of each rank that are listed, the most expensive first."""


@dataclass(frozen=True)
class Limits:
    """When gaps between the same work count as recurring."""

    steps_ratio: float = limit(0.5, "of the rank's steps", "chosen by us: in most steps, perhaps not in the outer ones")


COLUMNS = columns(
    "rank",
    meaning("cause", "Cause of most of their time."),
    *(column for column in PLACES if column.name in ("before_name", "next_name")),
    Column("steps", "int64", "Number of steps in which there is such a gap."),
    Column("of_steps", "int64", "Number of steps of the rank."),
    Column("count", "int64", "Number of such gaps.", importance=61),
    Column("total_ns", "int64", "Their total time."),
    Column("mean_ns", "int64", "Their time in a step, on average.", importance=45),
    Column("step_ratio", "float64", "Share of the rank's steps.", title="share"),
    Column("launched", "string", "When the host launched the work after most of them: before the gap or in it."),
    *(column for column in PLACES if column.name in ("next_stream", "ahead_ns")),
    meaning("start_ns", "Start of the longest of them, which is the one explained."),
    Column("longest_step", "int32", "Step of the longest of them."),
    Column("longest_ns", "int64", "Length of the longest of them."),
    *HOST,
    Column("waits_for", "string", "What the stream waited for meanwhile, as recorded; null if nothing was recorded."),
    nulls="launched next_stream ahead_ns during during_ratio mostly mostly_ratio place process thread waits_for",
    keep="rank mean_ns step_ratio cause next_name before_name launched layer during",
)


@analysis("rank", COLUMNS, together=True, passes=("chosen",))
def recurring_gaps(
    gap_ends: pl.DataFrame,
    timed_steps: pl.DataFrame,
    slices: pl.LazyFrame | None,
    synchronizations: pl.LazyFrame | None,
    chosen: Choice = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Sum the gaps that lie between work of the same two names in most steps: one row per place, most expensive first.

    `ahead_ns` is the median. What the host did is that in the longest of the gaps.

    Args:
        chosen: Only gaps in these steps, e.g. `1-3`.
        limits: When gaps count as recurring.
    """
    steps = (
        in_steps(timed_steps, chosen)
        .group_by("rank")
        .agg(of_steps=pl.len().cast(pl.Int64), recorded_ns=pl.col("window_ns").sum())
    )
    known = gap_ends.filter(pl.col("before_name").is_not_null() & pl.col("next_name").is_not_null())
    longest = known.sort(*PLACE, -pl.col("duration_ns"), "start_ns").unique(PLACE, keep="first", maintain_order=True)
    time = pl.col("duration_ns").sum()
    sums = known.group_by(PLACE).agg(
        steps=pl.col("step").n_unique().cast(pl.Int64),
        count=pl.len().cast(pl.Int64),
        total_ns=time,
        ahead=pl.col("ahead_ns").median(),
    )
    for name in ("cause", "launched"):
        sums = sums.join(_most(known, name), on=PLACE, how="left")
    places = (
        sums.join(steps, on="rank")
        .filter(pl.col("steps") >= limits.steps_ratio * pl.col("of_steps"))
        .with_columns(
            mean_ns=rounded(pl.col("total_ns") / pl.col("of_steps")),
            step_ratio=pl.col("total_ns") / pl.col("recorded_ns").clip(lower_bound=1),
        )
        .sort("rank", -pl.col("total_ns"), *PLACE)
        .group_by("rank", maintain_order=True)
        .head(MOST)
    )
    explaining = longest.join(places.select(PLACE), on=PLACE, how="semi")
    explained = explained_gaps(explaining, slices, synchronizations).select(
        *PLACE,
        "start_ns",
        *(column.name for column in HOST),
        *("next_stream", "waits_for"),
        longest_step="step",
        longest_ns="duration_ns",
    )
    found = places.join(explained, on=PLACE).with_columns(ahead_ns=rounded(pl.col("ahead")))
    return found.select(names(COLUMNS)).sort("rank", -pl.col("total_ns"), "before_name", "next_name")


def _most(gaps: pl.DataFrame, name: str) -> pl.DataFrame:
    """The value of a column with most time at each place."""
    sums = gaps.group_by(*PLACE, name).agg(pl.col("duration_ns").sum())
    order = sums.sort(*PLACE, -pl.col("duration_ns"), name, nulls_last=True)
    return order.unique(PLACE, keep="first", maintain_order=True).select(*PLACE, name)
