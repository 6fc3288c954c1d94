"""Rows of `allocations` and `memory_curve` as other tools know them: of an allocator."""

from __future__ import annotations

from typing import Literal

import polars as pl

from stepscope.export.job import Job
from stepscope.tables.memory_curve import SHARED_MEMORY


def allocator_rows(job: Job, table: Literal["allocations", "memory_curve"]) -> pl.DataFrame:
    """The wanted rows without those of blocks that processes hand to each other, which no allocator counts."""
    return job.rows(table).filter(pl.col("component").ne_missing(pl.lit(SHARED_MEMORY)))
