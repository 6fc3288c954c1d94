"""Which counters of a rank's device differ from those of its peers, or moved: clocks, power, temperature, rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.counter_steps import OF_SPEED
from stepscope.analysis.methods.peers import typical
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When a counter differs or has moved."""

    ratio: float = limit(0.02, "of the peers' or the earlier level", "chosen by us: clocks move in steps of 1 to 2 %")
    noise: float = limit(3.0, "times the mean change from step to step", "chosen by us: a lasting change, not noise")


LIMITS = Limits()

COLUMNS = columns(
    "rank",
    Column("name", "string", "Counter with its unit, e.g. `ai_core_frequency_mhz`."),
    Column("role", "string", "What it shows.", values=OF_SPEED),
    Column("mean", "float64", "Mean over the steps, in the counter's unit, as are the next ones."),
    Column("busy_mean", "float64", "Mean while the rank computes."),
    Column("typical", "float64", "`busy_mean` of the median peer; null without peers."),
    Column("least", "float64", "Lowest level in any step."),
    Column("ratio", "float64", "`busy_mean` over `typical`; null without peers."),
    Column("differs", "bool", "True if it differs from the peers' beyond the limit."),
    Column("since_step", "int32", "First step at a new level that lasts; null if it never moved."),
    Column("before", "float64", "Level before; null if it never moved."),
    Column("after", "float64", "Level from that step on; null if it never moved."),
    meaning("steps", "Number of steps with this counter."),
    nulls="typical ratio since_step before after",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_counters(counter_steps: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare the counters of each rank with the ranks that have the same, and find when they moved.

    Returns:
        One row per rank and counter, in order.
    """
    return compared_counters(counter_steps, limits=limits)


def compared_counters(levels: pl.DataFrame, slow: Sequence[int] = (), limits: Limits = LIMITS) -> pl.DataFrame:
    """`rank_counters` against the ranks that are not slow.

    Args:
        levels: As `counter_steps`.
        slow: Ranks that are no example for others. Default: each rank is compared with the median rank.
        limits: When a counter differs or has moved.
    """
    by = ["rank", "name"]
    sums = levels.sort("step").group_by(*by, "role").agg(
        pl.col("mean", "busy_mean").mean(),
        pl.col("least").min(),
        steps=pl.len().cast(pl.Int64),
        calls=pl.lit(1),
    )  # fmt: skip
    compared = sums.with_columns(typical=typical("busy_mean", slow, ["name"])).with_columns(
        ratio=pl.when(pl.col("typical") > 0).then(pl.col("busy_mean") / pl.col("typical"))
    )
    return (
        compared.join(_moved(levels, limits), on=by, how="left")
        .with_columns(differs=((pl.col("ratio") - 1).abs() > limits.ratio).fill_null(False))
        .select(names(COLUMNS))
        .sort(by)
    )


def _moved(levels: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """When each counter moved for good: the step that splits its levels best, if both sides differ beyond noise."""
    by, level = ["rank", "name"], pl.col("busy_mean")
    ordered = levels.sort(*by, "step")
    number, place = pl.len().over(by), pl.int_range(pl.len()).over(by)
    before = (level.cum_sum().over(by) - level) / place
    after = (level.sum().over(by) - level.cum_sum().over(by) + level) / (number - place)
    split = ordered.with_columns(place=place, number=number, before=before, after=after).filter(pl.col("place") > 0)
    strength = (pl.col("after") - pl.col("before")).abs() * (
        pl.col("place") * (pl.col("number") - pl.col("place"))
    ).sqrt()
    # where it jumps, the change from step to step is the jump itself, which is no noise
    jumps = ordered.with_columns(jump=(level - level.shift(1).over(by)).abs()).drop_nulls("jump")
    noise = jumps.group_by(by).agg(
        noise=((pl.col("jump").sum() - pl.col("jump").max()) / (pl.len() - 1)).fill_nan(0.0).fill_null(0.0)
    )
    change = (pl.col("after") - pl.col("before")).abs()
    return (
        split.with_columns(strength=strength)
        .sort(*by, "strength", "step", descending=[False, False, True, False])
        .unique(by, keep="first", maintain_order=True)
        .join(noise, on=by)
        .filter((change > limits.ratio * pl.col("before").abs()) & (change > limits.noise * pl.col("noise")))
        .select(*by, "before", "after", since_step="step")
    )
