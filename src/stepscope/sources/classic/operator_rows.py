"""What lists of operators have in common: names, shares, and their way into `operator_totals`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.tables import OPERATOR_TOTALS

TYPES = FileLayout(
    fields=(
        Field("name", "text", ("kernel_type", "op_type"), required=True),
        Field("total_ns", "ms", ("total_time", "execution_time"), required=True),
        Field("count", "int", ("execution_frequency",), required=True),
        Field("share", "float", ("percent", "total_percent")),
    ),
    report_cells=True,
    report_empty=True,
    orders=(order("kernel_type,total_time,execution_frequency,percent"),),
)
"""The columns of a list of types; of an Ascend device and of PyNative alike."""

_NUMBER = r"-op\d+$"
_ROUNDING = {1.0: 1e-5, 100.0: 0.0051}
"""Whole of the shares to half of their last digit, as the generations wrote them."""
_LONGEST_NS = 10**17
"""Three years, which no profile is long."""


def short_name(full_name: pl.Expr) -> pl.Expr:
    """`Conv2D-op10` of `Default/network/Conv2D-op10`."""
    return full_name.str.split("/").list.last()


def type_of(name: pl.Expr) -> pl.Expr:
    """`Conv2D` of `Conv2D-op10`."""
    return name.str.replace(_NUMBER, "")


def check_shares(path: Path, rows: pl.DataFrame, sink: Sink) -> None:
    """Report shares that do not match the totals in the same file.

    Args:
        path: The file.
        rows: `total_ns`, and `share` of their sum as a fraction or in %, if the file has it.
        sink: Takes the note.
    """
    if "share" not in rows.columns or not rows["share"].count() or not (whole := rows["total_ns"].sum()):
        return
    shares = float(rows["share"].sum())
    unit = min(_ROUNDING, key=lambda one: abs(shares - one))
    differing = rows.filter((pl.col("share") - pl.col("total_ns") / whole * unit).abs() > _ROUNDING[unit]).height
    if differing:
        problem = f"the share of {differing} of {rows.height} rows does not match their total time, which is used"
        sink.issue("note", path, problem, "Nothing to do unless rows are missing from the file.")


def write_operators(path: Path, rows: pl.DataFrame, unit: str, level: str, sink: Sink) -> None:
    """Write rows of `operator_totals`; unknown columns are left out, impossible rows are reported.

    Args:
        path: The file.
        rows: `name`, `count`, `total_ns`, and more of the table's columns.
        unit: The list that they are in.
        level: What a row is.
        sink: Takes the rows.
    """
    sound = rows.filter(pl.col("count") >= 0, pl.col("total_ns").is_between(0, _LONGEST_NS))
    if lost := rows.height - sound.height:
        problem = f"{lost} of {rows.height} rows have an impossible time or count and are left out"
        sink.issue("error", path, problem, "The file is damaged; copy it again.", lost=lost)
    kept = [name for name in rows.columns if name in OPERATOR_TOTALS.stored_schema]
    named = sound.select(kept).with_columns(unit=pl.lit(unit), level=pl.lit(level))
    sink.write(OPERATOR_TOTALS, named)
