"""Which process groups, or ranks that send to each other, transmit more slowly than comparable ones, at which cost."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.communication.gains import gains
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    meaning("group", "Key of the process group."),
    "group_name",
    Column("ranks", "string", "Recorded members, or the two ranks of its slow transfers, e.g. `0, 1`."),
    Column(
        "source", "int32", "The rank that sends, if only what it sends to the other is slow; else null.", importance=50
    ),
    Column("operation", "string", "Operations of the slow calls, e.g. `all_reduce`."),
    meaning("transmit_ns", "Transmission time of the slow calls in a slow step."),
    Column("typical_ns", "int64", "How long these take in comparable groups, or in its usual steps.", importance=51),
    Column("slowdown_factor", "float64", "`transmit_ns` over `typical_ns`.", title="times typical"),
    Column("calls", "float64", "Mean number of these calls in a slow step.", importance=36),
    meaning("cost_ns", "Extra transmission time in the mean step: an upper bound."),
    Column(
        "exposed_ns",
        "int64",
        "Its share of what the job would save per step if slow groups and ranks were typical, by replay; null if "
        "unknown.",
        importance=52,
    ),
    Column("saving_low_ns", "int64", "What it may be at least, as in `suspect_costs`.", importance=21),
    Column("saving_high_ns", "int64", "What it may be at most, as in `suspect_costs`.", importance=22),
    Column("alone_ns", "int64", "What mending this alone would save.", importance=20),
    Column(
        "beside",
        "string",
        "What is faster: `others`, or its own other `steps`.",
        values=("others", "steps"),
        importance=39,
    ),
    Column("pattern", "string", "When it is slow, as in `late_ranks`.", importance=40),
    meaning("steps", "Number of its steps."),
    Column("slow_steps", "list[int32]", "Those in which it is slow.", importance=12),
    Column("period", "int64", "Steps between recurrences; null if irregular.", importance=13),
    "score",
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it.", importance=11),
    nulls="group_name source exposed_ns saving_low_ns saving_high_ns alone_ns period score error_ratio",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_groups(
    suspected_groups: pl.DataFrame, groups: pl.LazyFrame | None, suspect_costs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Name the groups that transmit slowly (`suspected_groups`), and what they cost (`suspect_costs`).

    If a source records no links, this shows which group, or pair of ranks, has the slow link.

    Returns:
        One row per slow group, or pair of ranks, most expensive first.
    """
    if suspected_groups.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    slow = pl.col("step").n_unique()
    found = suspected_groups.group_by("suspect", maintain_order=True).agg(
        pl.col("group").min(),
        *(
            pl.col(name).first()
            for name in ("ranks", "source", "slowdown_factor", "beside", "pattern", "steps", "period", "score")
        ),
        pl.col("operation").unique().sort().str.join(", "),
        pl.col("transmit_ns", "typical_ns").sum() / slow,
        calls=pl.len() / slow,
        cost_ns=(pl.col("transmit_ns") - pl.col("typical_ns")).sum() / pl.col("steps").first(),
        slow_steps=pl.col("step").unique().sort(),
    )
    return (
        found.join(gains(suspect_costs, "groups"), on="suspect", how="left", maintain_order="left")
        .join(group_names(groups), on="group", how="left", maintain_order="left")
        .with_columns(rounded(pl.col("transmit_ns", "typical_ns", "cost_ns")))
        .select(names(COLUMNS))
        .sort(-pl.col("cost_ns"), "group", "ranks", nulls_last=True)
    )
