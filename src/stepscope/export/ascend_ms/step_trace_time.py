"""step_trace_time.csv: where the time of each step went."""

from __future__ import annotations

import polars as pl

from stepscope.export.ascend_ms.units import csv_text, microseconds
from stepscope.export.rank_export import RankExport
from stepscope.tables.steps import WHOLE_RECORDING

COLUMNS = {
    "Computing": "computing_ns",
    "Communication(Not Overlapped)": "communication_not_overlapped_ns",
    "Overlapped": "overlapped_ns",
    "Communication": "communication_ns",
    "Free": "free_ns",
    "Stage": "stage_ns",
    "Bubble": "bubble_ns",
    "Communication(Not Overlapped and Exclude Receive)": "communication_not_overlapped_exclude_receive_ns",
}
"""Header to column of `breakdown`."""
PREPARING = "Preparing"


def step_trace_time(export: RankExport) -> str:
    """The file, in microseconds, from our own breakdown; the format's `Free` contains memory operations.

    `Preparing` is left out if no step has it: it ends with a step's first device task, which a host does not have.

    Raises:
        Unavailable: If the steps cannot be split, with the reason.
    """
    parts: pl.DataFrame = export.run.analyse("breakdown")
    rows = parts.with_columns(free_ns=pl.col("free_ns") + pl.col("memory_not_overlapped_ns"))
    step = pl.when(pl.col("window") != WHOLE_RECORDING).then(pl.col("step").cast(pl.String))
    columns = COLUMNS if rows["preparing_ns"].is_null().all() else {**COLUMNS, PREPARING: "preparing_ns"}
    return csv_text(rows.select(step.alias("Step"), *(microseconds(c).alias(title) for title, c in columns.items())))
