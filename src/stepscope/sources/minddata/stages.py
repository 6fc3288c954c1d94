"""`dataset.csv`, in classic profiles `dataset_N.csv`: how often each stage of a dataset operation ran, how long."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
from stepscope.tables import OPERATOR_TOTALS

_STAGES = FileLayout(
    fields=(
        Field("type", "text", ("operation",), required=True),
        Field("name", "text", ("stage",), required=True),
        Field("count", "int", ("occurrences",), required=True),
        Field("mean", "float", ("avg._time", "avg_time"), required=True),
    ),
    ignored=frozenset({"custom_info"}),
    report_empty=True,
    orders=(order("operation,stage,occurrences,avg_time,custom_info"),),
)
_LARGEST_US = 9e15


def read_stages(file: Path, sink: Sink) -> pl.DataFrame:
    """Rows of `operator_totals` of unit `DATASET` and level `stage`: count times average (us).

    Args:
        file: The file.
        sink: Told about damage.
    """
    rows = read_csv(file, _STAGES, sink)
    if rows is None:
        return OPERATOR_TOTALS.frame()
    total_us = pl.col("count") * pl.col("mean")
    sound = rows.filter((pl.col("count") >= 0) & total_us.is_between(0, _LARGEST_US))
    if lost := rows.height - sound.height:
        sink.issue("error", file, f"{lost} rows have impossible numbers and are left out", "Copy it again.", lost=lost)
    totals = sound.select("name", "type", "count", total_ns=whole(total_us * 1000))
    full_name = pl.format("{}::{}", "type", "name")
    return OPERATOR_TOTALS.shaped(
        totals.with_columns(full_name=full_name, unit=pl.lit("DATASET"), level=pl.lit("stage"))
    )
