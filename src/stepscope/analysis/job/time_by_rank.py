"""The average time of a step and its parts, and the steps that take far longer than others."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, rounded
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.breakdown import SUMS
from stepscope.limits import limit
from stepscope.tables.base import Column

PARTS = ("window_ns", *(name for name in SUMS if name != "memory_ns"))


@dataclass(frozen=True)
class Limits:
    """When a step is far longer than the others: all limits must be exceeded."""

    length_factor: float = limit(2.0, "times the median step", "chosen by us: beyond ordinary variation")
    two_factor: float = limit(10.0, "times the other step, of two", "chosen by us: which of two is ordinary is unknown")
    score: float = limit(3.5, "robust deviations above the median", "modified z-scores, Iglewicz and Hoaglin, 1993")
    share_ratio: float = limit(0.05, "of the rank's recorded time, beyond the median step", "chosen by us")


LIMITS = Limits()


@analysis(
    "rank",
    columns(
        "rank",
        meaning("steps", "Number of steps averaged."),
        meaning("window_ns", "Mean length of a step's window."),
        "computing_ns communication_ns overlapped_ns communication_not_overlapped_ns",
        "memory_not_overlapped_ns free_ns data_loading_ns",
        Column("left_out_step", "int32", "First step, if left out because it is far longer; else null."),
        Column("left_out_ns", "int64", "Length of that step."),
        nulls="left_out_step left_out_ns",
    ),
    together=True,
)
def time_by_rank(
    breakdown: pl.DataFrame, outer_steps: pl.DataFrame | None = None, limits: Limits = LIMITS
) -> pl.DataFrame:
    """Average the parts of `breakdown` over the steps, so that the parts add up to the step: one row per rank.

    A first step that is far longer than the others is start-up and left out.
    """
    left_out = pl.col("is_first") & pl.col("is_long") & (pl.len().over("rank") > 2)
    rows = measured(breakdown, outer_steps, limits).with_columns(left_out=left_out)
    counted = rows.filter(~pl.col("left_out"))
    parts = [part for part in PARTS if part in breakdown.columns]
    means = counted.group_by("rank").agg(pl.len().cast(pl.Int64).alias("steps"), rounded(pl.col(parts).mean()))
    left = rows.filter("left_out").select("rank", left_out_step="step", left_out_ns="window_ns")
    return means.join(left, on="rank", how="left").sort("rank")


def long_steps(
    breakdown: pl.DataFrame, outer_steps: pl.DataFrame | None = None, limits: Limits = LIMITS
) -> pl.DataFrame:
    """The steps that are far longer than others of their rank, each on the rank where it is longest.

    Args:
        breakdown: The steps, or `timed_steps`, where steps with and without operators have separate medians, because
            recording operators takes time.
        outer_steps: The first step of the recording. Default: the first step of `breakdown`.
        limits: When a step counts as far longer.

    Returns:
        `step`, `rank`, `window_ns`, `median_ns` (of the rank's steps of the same kind), `share_ratio` (of the rank's
        recorded time), `is_first` (first recorded step of the rank), longest first.
    """
    found = measured(breakdown, outer_steps, limits).filter("is_long").sort(-pl.col("window_ns"), "rank")
    longest = found.unique("step", keep="first", maintain_order=True)
    return longest.select("step", "rank", "window_ns", "median_ns", "share_ratio", "is_first")


def measured(breakdown: pl.DataFrame, outer_steps: pl.DataFrame | None, limits: Limits) -> pl.DataFrame:
    """The steps with `median_ns` (of two steps, the shorter), `share_ratio`, `is_first`, `is_long`, `steps` (number of
    the rank's) and `recorded_ns` (their length)."""
    alike = [name for name in ("rank", "by_phases") if name in breakdown.columns]
    window, step = pl.col("window_ns"), pl.col("step")
    deviation = (window - pl.col("median_ns")).abs().median().over(alike) * MAD_TO_SIGMA
    excess = window - pl.col("median_ns")
    total = window.sum().over("rank")
    own = breakdown.group_by("rank").agg(first_step=step.min())
    firsts = own if outer_steps is None else outer_steps.select("rank", "first_step")
    rows = breakdown.join(firsts, on="rank", how="left", maintain_order="left")
    two = pl.len().over(alike) == 2
    usual = pl.when(two).then(window.min().over(alike)).otherwise(window.median().over(alike))
    factor = pl.when(two).then(limits.two_factor).otherwise(limits.length_factor)
    return rows.with_columns(
        median_ns=usual, steps=pl.len().over("rank").cast(pl.Int64), recorded_ns=total
    ).with_columns(
        share_ratio=pl.when(total > 0).then(window / total).otherwise(0.0),
        is_first=step == pl.col("first_step"),
        is_long=(window > factor * pl.col("median_ns"))
        & (two | (excess > limits.score * deviation))
        & (excess > limits.share_ratio * total),
    )
