"""dataset.csv, and the files of the data pipeline that the directory repeats."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.units import csv_text
from stepscope.export.job import Job

PIPELINE = (
    "minddata_pipeline_raw_{rank}.csv",
    "minddata_pipeline_summary_{rank}.csv",
    "minddata_pipeline_summary_{rank}.json",
)
"""Files of the `profiler` directory that also stand here."""
FETCHING = r"(?i)dataloader.*__next__|^data$"
"""Ranges in which the training loop took a batch."""


def dataset(job: Job) -> str:
    """What the training loop did with its data pipeline: how often it took a batch, and how long that took.

    Raises:
        Unavailable: If no taking of a batch was recorded.
    """
    taken = job.rows("slices").filter((pl.col("category") == "annotation") & pl.col("name").str.contains(FETCHING))
    if taken.is_empty():
        raise Unavailable("no data loading was recorded")
    totals = taken.group_by("name").agg(count=pl.len(), mean_ns=pl.mean("duration_ns")).sort("name")
    return csv_text(
        totals.select(
            pl.col("name").alias("Operation"),
            pl.lit("getNext").alias("Stage"),
            pl.col("count").alias("Occurrences"),
            (pl.col("mean_ns") / 1000).round(3).alias("Avg. time (us)"),
            pl.lit(None, pl.String).alias("Custom Info"),
        )
    )


def pipeline_copies(job: Job) -> dict[str, Path]:
    """Pipeline files made for the `profiler` directory in this export: name to path."""
    names = [name.format(rank=job.rank) for name in PIPELINE]
    return {name: job.directory / name for name in names if name in job.written}
