"""Which process groups transmit more slowly than others that do the same."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.statistics import log_score
from stepscope.limits import limit

SAME = ["operation", "size_bytes", "members"]


@dataclass(frozen=True)
class Limits:
    """When a group is called slow."""

    slowdown_factor: float = limit(
        1.25, "of the median group's transmission", "healthy groups of a kind agree within 10 %"
    )
    score: float = limit(3.5, "robust deviations of log(transmission)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(transmission)", "smaller spread is noise")
    groups: int = limit(3, "groups that do the same", "fewer give no median to compare with")


LIMITS = Limits()


@analysis("job")
def slow_groups(arrival: pl.DataFrame, groups: pl.LazyFrame | None, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare the transmission of each group with that of other groups in calls of the same kind, size and members.

    Where a source records no links, this tells in which group the slow link must be. The transmission of a call is
    the least of its members' (`arrival`): the time from the last arrival to the first end.

    Returns:
        One row a slow group and kind of call, dearest first: `group`, `group_name`, `ranks` (members that were
        recorded, as text), `operation`, `size_bytes`, `transmit_ns` (median call), `typical_ns` (median group),
        `slowdown_factor`, `calls` (in a step), `cost_ns` (a step), `score`.
    """
    matched = arrival.filter((pl.col("members") > 1) & pl.col("group").is_not_null() & ~pl.col("point_to_point"))
    calls = matched.group_by("group", "sequence", "step", *SAME).agg(pl.col("transmit_ns").min())
    by_group = calls.group_by("group", *SAME).agg(
        pl.col("transmit_ns").median(), calls=pl.len() / pl.col("step").n_unique().clip(lower_bound=1)
    )
    compared = (
        by_group.filter(pl.col("transmit_ns") > 0)
        .with_columns(
            typical_ns=pl.col("transmit_ns").median().over(SAME),
            score=log_score("transmit_ns", SAME, limits.floor),
            others=pl.len().over(SAME),
        )
        .with_columns(slowdown_factor=pl.col("transmit_ns") / pl.col("typical_ns"))
    )
    slow = compared.filter(
        (pl.col("others") >= limits.groups)
        & (pl.col("score") >= limits.score)
        & (pl.col("slowdown_factor") >= limits.slowdown_factor)
    )
    cost = (pl.col("transmit_ns") - pl.col("typical_ns")) * pl.col("calls")
    members = matched.group_by("group").agg(ranks=pl.col("rank").unique().sort().cast(pl.String).str.join(", "))
    return (
        slow.join(members, on="group")
        .join(group_names(groups), on="group", how="left")
        .select(
            "group",
            "group_name",
            "ranks",
            "operation",
            "size_bytes",
            pl.col("transmit_ns", "typical_ns").round().cast(pl.Int64),
            "slowdown_factor",
            "calls",
            cost.round().cast(pl.Int64).alias("cost_ns"),
            "score",
        )
        .sort("cost_ns", "group", "operation", "size_bytes", descending=[True, False, False, False])
    )


def group_names(groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Each group's name for people: `group`, `group_name`."""
    if groups is None:
        return pl.DataFrame(schema={"group": pl.String, "group_name": pl.String})
    return groups.group_by("group").agg(group_name=pl.col("name").drop_nulls().first()).collect()
