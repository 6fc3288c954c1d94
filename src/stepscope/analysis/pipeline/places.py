"""Which pipeline stage each rank is, and how the stages are run."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.pipeline_places import stages_of
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import GROUPS
from stepscope.tables.base import Column, schema_of

NO_PIPELINE = (
    "no pipeline stages are known: neither parallel sizes nor groups of pipeline parallelism were recorded, or there "
    "is one stage"
)

COLUMNS = columns(
    "rank",
    Column("stage", "int32", "Pipeline stage, from 0.", nullable=False),
    Column("stages", "int32", "Number of stages.", nullable=False),
    Column("recorded", "bool", "Whether there is a recording of the rank.", nullable=False),
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
    found = stages_of(known, GROUPS.or_empty(groups).collect(), parallel_layout)
    if not found:
        raise Unavailable(NO_PIPELINE)
    here = set(known["rank"])
    rows = {
        "rank": list(found),
        "stage": list(found.values()),
        "stages": [max(found.values()) + 1] * len(found),
        "recorded": [rank in here for rank in found],
    }
    return pl.DataFrame(rows, schema_overrides=schema_of(COLUMNS)).select(names(COLUMNS))
