"""Totals of operators by type and by place in the model."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
from stepscope.sources.mindspore_cpu.files import CpuFiles, Unit
from stepscope.tables import OPERATOR_TOTALS

TYPES = FileLayout(
    fields=(
        Field("type", "text", ("op_type",), required=True),
        Field("count", "int", ("type_occurrences",), required=True),
        Field("operators", "int", ("execution_frequency(per-step)", "execution_frequency")),
        Field("total", "float", ("total_compute_time", "total_time"), required=True),
        Field("average", "float", ("avg_time", "total_avg_time")),
        Field("share", "float", ("percent", "total_proportion", "total_time_proportion")),
    ),
    report_cells=True,
    report_empty=True,
    orders=(order("op_type,type_occurrences,execution_frequency,total_compute_time,avg_time,percent"),),
)
DETAILS = FileLayout(
    fields=(
        Field("core", "text", ("op_side",)),
        Field("type", "text", ("op_type",), required=True),
        Field("name", "text", ("op_name",), required=True),
        Field("full_name", "text", ("full_op_name", "op_full_name")),
        Field("count", "int", ("op_occurrences",), required=True),
        Field("total", "float", ("op_total_time", "total_compute_time"), required=True),
        Field("average", "float", ("op_avg_time",)),
        Field("share", "float", ("total_proportion", "total_time_proportion")),
        Field("subgraph", "text", ("subgraph",)),
        Field("process", "int", ("pid",)),
    ),
    report_cells=True,
    report_empty=True,
    orders=(
        order(
            "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time,"
            "op_avg_time,total_proportion,subgraph,pid"
        ),
        order(
            "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time,op_avg_time,total_proportion,subgraph"
        ),
    ),
)
_TOLERANCE = 0.01
_SMALLEST_MS = 1e-6


def read_totals(files: CpuFiles, unit: Unit, sink: Sink) -> pl.DataFrame:
    """Rows of `operator_totals` of levels `type` and `operator`; types are summed from operators if they are lost.

    Times are ms, unless the header has another unit. Averages and shares are checked and not kept.

    Args:
        files: The files of a rank.
        unit: The list that the rows are in.
    """
    types = _read(files.types, TYPES, sink)
    details = _read(files.details, DETAILS, sink)
    if types is None and details is not None:
        sums = (pl.sum("count", "total_ns"), pl.col("name").n_unique().alias("operators"))
        types = details.group_by("type", maintain_order=True).agg(sums).with_columns(name="type")
    kinds = ((types, "type"), (details, "operator"))
    rows = [_rows(frame, level, unit) for frame, level in kinds if frame is not None]
    return pl.concat(rows, how="vertical_relaxed") if rows else OPERATOR_TOTALS.frame()


def _rows(frame: pl.DataFrame, level: str, unit: Unit) -> pl.DataFrame:
    kept = [name for name in frame.columns if name in OPERATOR_TOTALS.stored_schema]
    return OPERATOR_TOTALS.shaped(frame.select(*kept, level=pl.lit(level), unit=pl.lit(unit)))


def _read(path: Path | None, layout: FileLayout, sink: Sink) -> pl.DataFrame | None:
    """The rows of a file with `total_ns` and `name`; None if there is none or it cannot be read."""
    rows = read_csv(path, layout, sink)
    if rows is None or path is None:
        return None
    name = pl.col("name") if "name" in rows.columns else pl.col("type")
    named = rows.with_columns(name=name, total_ns=whole(pl.col("total") * _unit_ns(path)))
    sound = named.filter(pl.col("count") >= 0, pl.col("total_ns") >= 0)
    if lost := named.height - sound.height:
        sink.issue("error", path, f"{lost} rows have impossible times and are left out", "Copy it again", lost=lost)
    _compare(sound, path, sink)
    return sound


def _unit_ns(path: Path) -> int:
    """ns of the file's unit of time: us if the header of a total or an average has it, otherwise ms."""
    times = [name for name in header_of(path) if "total" in name or "avg" in name]
    return 1_000 if any("(us)" in name for name in times) else 1_000_000


def _compare(rows: pl.DataFrame, path: Path, sink: Sink) -> None:
    """Report averages and shares that do not match counts and totals."""
    total = pl.col("total")
    share = pl.when(pl.col("share").max() > 1.0 + _TOLERANCE).then(pl.col("share") / 100).otherwise("share")
    tests = {
        "average": (pl.col("average") * pl.col("count") - total).abs() > _TOLERANCE * total + _SMALLEST_MS,
        "share": (share - total / total.sum()).abs() > _TOLERANCE,
    }
    off = rows.select(**{name: test.sum() for name, test in tests.items()}).row(0, named=True)
    for name, count in off.items():
        if count:
            problem = f"{count} of {rows.height} rows have {name}s that do not match their totals and counts"
            sink.issue("note", path, problem, f"Nothing to do: {name}s are computed. Rows may be missing")
