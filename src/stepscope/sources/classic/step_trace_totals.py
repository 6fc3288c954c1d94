"""`cluster_analyse`: what each step spent on communication alone, and in pipelines on receiving, in ms.

Its rows are the steps and, if there are several, the average of all but the first, which is not kept.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files import Field, FileLayout, read_csv
from stepscope.tables import STEP_TOTALS

_LAYOUT = FileLayout(
    fields=(
        Field("computing_and_free_ns", "ms", ("computation_time",), required=True),
        Field("communication_not_overlapped_ns", "ms", ("communication_alone_time",), required=True),
        Field("stage_ns", "ms", ("stage_time",)),
        Field("bubble_ns", "ms", ("receive_alone_time",)),
        Field("communication_not_overlapped_exclude_receive_ns", "ms", ("collective_communication_alone_time",)),
    ),
    tells_cells=True,
)
_ROUNDING_NS = 200
"""Twice the file's last digit, 0.1 us."""


def write_step_totals(path: Path, steps: pl.DataFrame | None, sink: Sink) -> None:
    """Write the rows of steps.

    Args:
        path: The file.
        steps: Rows of `steps` in order, if known: which tells whether the last row is the average, and what the
            steps' numbers are.
        sink: Takes the rows.
    """
    rows = read_csv(path, _LAYOUT, sink)
    if rows is None:
        return
    if rows.is_empty():
        sink.issue("error", path, "holds no steps", "Copy the file again, or run the profiler's analysis again.")
        return
    columns = [pl.col(field.column) for field in _LAYOUT.fields if field.column in rows.columns]
    if negative := rows.filter(pl.any_horizontal(column < 0 for column in columns)).height:
        problem = f"{negative} of {rows.height} rows have times below 0, which count as unknown"
        sink.issue("error", path, problem, "The file was damaged; copy it again.", lost=negative)
    rows = rows.with_columns(pl.when(column >= 0).then(column) for column in columns)
    known = None if steps is None else steps["step"]
    if _ends_with_average(rows, known):
        rows = rows.head(-1)
    if known is None or len(known) != rows.height:
        if known is not None:
            problem = f"has {rows.height} steps where the step trace has {len(known)}; they are numbered from 1"
            sink.issue("warning", path, problem, "Copy both files again: they may be cut or of different profiles.")
        known = pl.Series(range(1, rows.height + 1), dtype=pl.Int32)
    sink.write(STEP_TOTALS, STEP_TOTALS.conform(rows.with_columns(step=known)))


def _ends_with_average(rows: pl.DataFrame, steps: pl.Series | None) -> bool:
    """Whether the last row is the average: by the number of steps, else by its figures."""
    if rows.height < 3:
        return False
    if steps is not None and len(steps) in (rows.height, rows.height - 1):
        return len(steps) == rows.height - 1
    last, mean = rows.tail(1), rows.slice(1, rows.height - 2).mean()
    pairs = zip(last.row(0), mean.row(0), strict=True)
    return all(a is None or b is None or abs(a - b) <= _ROUNDING_NS for a, b in pairs)
