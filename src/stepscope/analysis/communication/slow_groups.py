"""Which process groups transmit more slowly than comparable groups."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import OF_KIND, SAME, matched_calls, sized_calls, with_groups
from stepscope.analysis.communication.comparable_calls import Limits as SizeLimits
from stepscope.analysis.methods.statistics import log_score, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits(SizeLimits):
    """When a group counts as slow."""

    slowdown_factor: float = limit(
        1.25, "of the median group's transmission", "healthy groups of a kind agree within 10 %"
    )
    score: float = limit(3.5, "robust deviations of log(transmission)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(transmission)", "smaller spread is noise")
    groups: int = limit(3, "comparable groups", "fewer give no median to compare with")


COLUMNS = columns(
    *OF_KIND,
    meaning("transmit_ns", "Transmission time of the median call."),
    Column("typical_ns", "int64", "`transmit_ns` of the median comparable group.", importance=51),
    Column("slowdown_factor", "float64", "`transmit_ns` over `typical_ns`.", title="times typical"),
    Column("calls", "float64", "Mean number of calls in a step.", importance=36),
    meaning("cost_ns", "`(transmit_ns - typical_ns) * calls`."),
    "score",
    nulls="group_name size_bytes sent_bytes",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_groups(
    arrival: pl.DataFrame, groups: pl.LazyFrame | None, links: pl.LazyFrame | None, limits: Limits = Limits()
) -> pl.DataFrame:
    """Compare the transmission of each group with other groups in calls of the same operation, size and member count.

    If a source records no links, this shows which group contains the slow link. The transmission of a call is the
    shortest of its members' (`arrival`): the time from the last arrival to the first end. The size is the payload or,
    if that is unknown, the bytes that its members sent over links. Calls of unknown size are not compared.

    Returns:
        One row per slow group and kind of call, most expensive first.
    """
    matched = matched_calls(arrival)
    calls = sized_calls(matched, links, limits.alike_factor)
    by_group = calls.group_by("group", *SAME).agg(
        pl.col("transmit_ns").median(),
        rounded(pl.col("sent_bytes").median()),
        calls=pl.len() / pl.col("step").n_unique().clip(lower_bound=1),
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
    return (
        with_groups(slow, matched, groups)
        .with_columns(rounded(pl.col("transmit_ns", "typical_ns")), cost_ns=rounded(cost))
        .select(names(COLUMNS))
        .sort(-pl.col("cost_ns"), "group", "operation", "size_bytes", "sent_bytes", nulls_last=True)
    )
