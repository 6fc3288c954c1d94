"""Which pipeline stage each rank is."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.layout_conflicts import GIVEN, PATTERN
from stepscope.analysis.methods.memberships import stages_of
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import GROUPS
from stepscope.tables.base import Column, schema_of

NO_PIPELINE = (
    "no pipeline stages are known: neither parallel sizes nor groups of pipeline parallelism were recorded, or there "
    "is one stage"
)

RECORDED = "recorded"

COLUMNS = columns(
    "rank",
    Column("stage", "int32", "Pipeline stage, from 0.", nullable=False),
    Column("stages", "int32", "Number of stages.", nullable=False),
    Column("recorded", "bool", "Whether there is a recording of the rank.", nullable=False),
    Column(
        "stage_by",
        "string",
        "`recorded`: the recording states it, or groups or parallel sizes do; `given` by the user; `communication`: "
        "from who sends to whom.",
        nullable=False,
        values=(RECORDED, GIVEN, PATTERN),
    ),
)


@analysis("job", COLUMNS, whole_job=True)
def pipeline_places(
    ranks: pl.LazyFrame, groups: pl.LazyFrame | None = None, parallel_layout: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Find the pipeline stage of each rank, recorded or not: one row per rank, in order.

    Raises:
        Unavailable: If stages are unknown, or there is one.
    """
    known = ranks.collect()
    listed = GROUPS.or_empty(groups).collect()
    found = stages_of(known, listed, parallel_layout)
    if not found:
        raise Unavailable(NO_PIPELINE)
    here = set(known["rank"])
    told = set[str]() if parallel_layout is None else set(parallel_layout["pp_by"].drop_nulls())
    by = GIVEN if GIVEN in told else PATTERN if PATTERN in told and not stages_of(known, listed) else RECORDED
    rows = {
        "rank": list(found),
        "stage": list(found.values()),
        "stages": [max(found.values()) + 1] * len(found),
        "recorded": [rank in here for rank in found],
        "stage_by": [by] * len(found),
    }
    return pl.DataFrame(rows, schema_overrides=schema_of(COLUMNS)).select(names(COLUMNS))
