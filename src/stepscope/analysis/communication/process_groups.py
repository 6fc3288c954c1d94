"""Which process groups a job has: their names, members, and what they are for."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.memberships import ranks_text
from stepscope.analysis.methods.parallelism import PARALLELISMS, parallelism_of
from stepscope.analysis.registry import analysis
from stepscope.tables import RANKS
from stepscope.tables.base import Column

COLUMNS = columns(
    "group group_name",
    Column(
        "parallelism",
        "string",
        "What it is for, by its name, or as its members are those of such a group in `parallel_layout`.",
        values=PARALLELISMS,
    ),
    Column("members", "list[int32]", "Its ranks, in group order; null if not recorded."),
    Column("member_ranks", "string", "The same for people, e.g. `0-3`; null if not recorded.", title="members"),
    Column("recorded", "int32", "Number of ranks that recorded it.", importance=38),
    nulls="group_name members member_ranks",
    keep="group_name parallelism member_ranks recorded",
)


@analysis("job", COLUMNS, whole_job=True)
def process_groups(
    groups: pl.LazyFrame, ranks: pl.LazyFrame | None = None, parallel_layout: pl.DataFrame | None = None
) -> pl.DataFrame:
    """List the process groups that ranks recorded: one row each, in order of their members and names.

    If ranks name a group differently or know other members, the lowest rank that knows any counts.
    """
    rows = groups.sort("group", "rank").collect()
    known = rows.group_by("group", maintain_order=True).agg(
        group_name=pl.col("name").drop_nulls().first(),
        members=pl.col("members").drop_nulls().first(),
        recorded=pl.col("rank").n_unique().cast(pl.Int32),
    )
    texts = [ranks_text(members) if members is not None else None for members in known["members"]]
    described = known.select("members", name="group_name")
    kinds = parallelism_of(described, RANKS.or_empty(ranks).collect(), parallel_layout)
    return (
        known.with_columns(
            member_ranks=pl.Series(texts, dtype=pl.String), parallelism=pl.Series(kinds, dtype=pl.String)
        )
        .with_columns(first=pl.col("members").list.min(), size=pl.col("members").list.len())
        .sort("first", "size", "group_name", "group", descending=[False, True, False, False], nulls_last=True)
        .select(names(COLUMNS))
    )
