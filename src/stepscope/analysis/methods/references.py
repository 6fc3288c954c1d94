"""What is normal among ranks that do the same work, and how far ordinary ranks are from it.

Normal is the median over the ranks that can be compared, in each step. That fails if half of the ranks or more are
slow. So ranks whose own times (medians over the steps) fall into clearly separate groups are compared with the lowest
group that has enough members.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.statistics import MAD_TO_SIGMA
from stepscope.limits import limit

WORK = ["kind", "peers"]
"""What is compared: a kind of work, among the ranks of a set of peers."""

BY_STEP, BY_RANK = [*WORK, "step"], [*WORK, "rank"]

MEDIAN_ERROR = 1.2533
"""Standard error of the median of many normal values over that of their mean."""

BY_RANKS = {2: 1.35, 3: 1.6, 4: 1.27, 5: 1.2, 6: 1.17, 7: 1.14, 8: 1.12, 9: 1.11}
BY_STEPS = {1: 1.0, 2: 1.42, 3: 1.0, 4: 1.08}
"""By how much the spread around medians of few ranks and of few steps is too small (simulated normal values)."""

CHANGES_FROM = 6
"""Number of steps from which on changes between steps show noise as well as distances from a median do."""


@dataclass(frozen=True)
class Limits:
    """When ranks form separate groups, which group is normal, and what is noise."""

    gap_score: float = limit(
        6.0, "standard errors of a rank's median, between groups", "our simulation of healthy jobs"
    )
    gap_ratio: float = limit(
        0.04, "of the typical own time, between groups", "chosen by us: healthy devices differ less"
    )
    enough_ratio: float = limit(0.25, "of the ranks, in the group that is normal", "chosen by us: fewer may be special")
    floor_ratio: float = limit(0.003, "of the typical own time", "smaller deviations are noise")
    floor_ns: float = limit(1000.0, "ns", "smaller deviations are noise, also where nothing is normal")


LIMITS = Limits()


def references(own: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Add what is normal to the own times of ranks.

    Of two ranks the faster in each step is normal. Of up to four, a single rank may be: if three of four are slow, the
    fourth is. Of more ranks, a quarter must agree, so one fast rank of eight does not make the others slow.

    Args:
        own: One row per `rank`, `step` and `kind` with `own_ns`, which is 0 if the rank did no such work; rows are
            missing only if that is unknown. `peers` (optional) names the ranks that can be compared.
        limits: What separates groups.

    Returns:
        The rows in their order with `peers`, `typical_ns`, `excess_ns` (own minus typical; both null if there is no
        rank to compare with), `normal` (whether the rank is one of those that define what is normal) and `sigma_ns`:
        the noise of `excess_ns` among ordinary ranks from step to step, the same for all rows of a kind and set of
        peers; null if there is only one step or one rank, so that noise is unknown.
    """
    if "peers" not in own.columns:
        own = own.with_columns(peers=pl.lit(None, pl.String))
    # what a step takes longer for all: without the ranks' own levels, so that the middle of two halves is well defined
    common = (pl.col("own_ns") - pl.col("level")).median().over(BY_STEP)
    compared = (
        own.select(*BY_STEP, "rank", "own_ns")
        .with_row_index("row")
        .with_columns(level=pl.col("own_ns").median().over(BY_RANK))
        .with_columns(off=pl.when(pl.col("rank").n_unique().over(BY_STEP) > 1).then(pl.col("own_ns") - common))
        .with_columns(centre=pl.col("off").median().over(BY_RANK))
        .with_columns(residual=(pl.col("off") - pl.col("centre")).abs())
        .with_columns(
            residual_rank=pl.col("residual").rank("ordinal").over(BY_RANK),
            change=pl.col("off").diff().over(BY_RANK, order_by="step").abs() / 2**0.5,
        )
    )
    noise = _noise(compared)
    ranks = _normal(_centres(compared, noise), limits)
    marked = compared.join(noise, on=WORK, how="left", nulls_equal=True, maintain_order="left").join(
        ranks, on=BY_RANK, how="left", nulls_equal=True, maintain_order="left"
    )
    typical = _typical(limits)
    typical_ns = pl.when(pl.col("off").is_not_null()).then(typical.over(BY_STEP)).round().cast(pl.Int64)
    floor = pl.max_horizontal(
        pl.col("own_ns").filter("normal").median().over(WORK) * limits.floor_ratio, pl.lit(limits.floor_ns)
    )
    found = marked.with_columns(
        typical_ns=typical_ns, sigma_ns=pl.when(pl.col("steps") > 1).then(pl.max_horizontal("sigma", floor))
    ).sort("row")
    return own.with_columns(
        found["typical_ns"],
        (own["own_ns"].cast(pl.Int64) - found["typical_ns"]).alias("excess_ns"),
        found["normal"].fill_null(False),
        found["sigma_ns"],
    )


def _typical(limits: Limits) -> pl.Expr:
    """What is typical in a step: the median of the normal ranks, or what the lowest quarter of them needs if that is
    far less, as half of the ranks may be slow in this step only."""
    normal = pl.coalesce(pl.col("own_ns").filter("normal").median(), pl.col("own_ns").median())
    quarter = pl.col("own_ns").filter("normal").quantile(limits.enough_ratio, "lower")
    half = pl.col("own_ns").filter("normal").quantile(0.5, "higher")
    apart = pl.max_horizontal(pl.col("sigma").first() * limits.gap_score, normal * limits.gap_ratio)
    return (
        pl.when(pl.col("ranks").first() == 2)
        .then(pl.col("own_ns").min())
        .when((pl.col("steps").first() > 1) & (half - quarter > apart))
        .then(quarter)
        .otherwise(normal)
    )


def _noise(compared: pl.DataFrame) -> pl.DataFrame:
    """Number of compared ranks and steps of each kind, and the standard deviation of the excess in one step.

    That is the spread of each rank around its own median, so steady differences between ranks do not count, nor do
    steps that are longer for all.
    """
    known = compared.filter(pl.col("off").is_not_null())
    ranks, steps = pl.col("rank").n_unique(), pl.col("step").n_unique()
    by_ranks = ranks.replace_strict(BY_RANKS, default=1 + 0.9 / ranks, return_dtype=pl.Float64)
    by_steps = steps.replace_strict(BY_STEPS, default=1.02, return_dtype=pl.Float64)
    # two ranks are compared with each other, so the noise of both is in the difference
    by_ranks *= pl.when(ranks == 2).then(2**0.5).otherwise(1.0)
    # one of a rank's few steps is its median, and its distance of 0 shows nothing
    shown = pl.col("residual").filter(pl.col("residual_rank") > 1)
    around = shown.median().fill_null(0)
    # if one of two ranks is slow since the middle step, its changes from step to step still show the noise
    changes = pl.when(steps >= CHANGES_FROM).then(pl.col("change").median())
    spread = pl.min_horizontal(around, changes) * MAD_TO_SIGMA
    return known.group_by(WORK).agg(ranks=ranks, steps=steps, sigma=spread * by_ranks * by_steps)


def _centres(compared: pl.DataFrame, noise: pl.DataFrame) -> pl.DataFrame:
    """Each rank's median, less what its steps took longer for all; in order."""
    known = compared.filter(pl.col("off").is_not_null())
    centres = known.group_by(BY_RANK).agg(centre=pl.col("off").median())
    return centres.join(noise, on=WORK, nulls_equal=True).sort(*WORK, "centre", "rank", nulls_last=True)


def _normal(centres: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Whether each rank is one of those that define what is normal: the lowest group with enough members."""
    error = pl.col("sigma") * MEDIAN_ERROR / pl.col("steps").sqrt()
    apart = pl.max_horizontal(error * limits.gap_score, pl.col("centre").median().over(WORK) * limits.gap_ratio)
    gap = (pl.col("centre") - pl.col("centre").shift(1)).over(WORK).fill_null(0)
    separate = (pl.col("gap") > pl.col("apart")) & (pl.col("steps") > 1) & (pl.col("ranks") > 2)
    enough = (pl.col("ranks") * limits.enough_ratio).ceil()
    members = pl.len().over([*WORK, "cluster"])
    lowest = pl.col("cluster").filter(pl.col("members") >= enough).min().over(WORK)
    return (
        centres.with_columns(gap=gap, apart=apart)
        .with_columns(separate=separate)
        .with_columns(cluster=pl.col("separate").cast(pl.Int32).cum_sum().over(WORK))
        .with_columns(members=members)
        .with_columns(lowest=lowest)
        .select(*BY_RANK, normal=(pl.col("cluster") == pl.col("lowest")).fill_null(True))
    )
