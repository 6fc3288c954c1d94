"""Where the ranks of a job are: host, device and pipeline stage, beside what an answer says of each."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.memberships import stages_of
from stepscope.selection import Choice, parse_selection
from stepscope.tables import GROUPS, RANKS
from stepscope.tables.base import Column

PLACE = (
    Column("host", "string", "Host of the rank; null if not recorded."),
    Column("device", "int32", "Device of the rank on its host; null if not recorded."),
    Column("stage", "int32", "Pipeline stage of the rank, from 0; null without a pipeline, or if it is unknown."),
)
"""Columns of an answer that has a row for each rank."""


def placed(
    rows: pl.DataFrame,
    ranks: pl.LazyFrame | None,
    groups: pl.LazyFrame | None,
    layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Rows (`rank`) with the columns of `PLACE`.

    Args:
        rows: The rows of an answer.
        ranks, groups: The tables of these names, of the whole job: a stage is known from the groups of all.
        layout: The answer `parallel_layout`.
    """
    known = RANKS.or_empty(ranks).collect()
    listed = None if groups is None else GROUPS.or_empty(groups).select("name", "members").collect()
    by_rank = stages_of(known, listed, layout) if known.height else {}
    of_stage = pl.DataFrame(
        {"rank": list(by_rank), "stage": list(by_rank.values())}, schema={"rank": pl.Int32, "stage": pl.Int32}
    )
    where = known.select("rank", "host", "device").unique("rank", keep="first", maintain_order=True)
    here = rows.drop([column.name for column in PLACE], strict=False)
    return here.join(where, on="rank", how="left", maintain_order="left").join(
        of_stage, on="rank", how="left", maintain_order="left"
    )


def of_stages(rows: pl.DataFrame, stage: Choice) -> pl.DataFrame:
    """The rows of the chosen pipeline stages, e.g. `0,2-3`; all if none were chosen. A job without a pipeline has one
    stage, 0."""
    wanted = parse_selection(stage, "stages")
    if wanted is None:
        return rows
    if not rows["stage"].count():
        return rows if 0 in wanted else rows.clear()
    return rows.filter(wanted.expression("stage").fill_null(False))
