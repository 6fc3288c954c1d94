"""What lists of operators have in common: names, counts, shares, and their way into `operator_totals`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
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


def write_list(path: Path | None, layout: FileLayout, unit: str, level: str, sink: Sink) -> pl.DataFrame | None:
    """Write a list of types, operators or kernels, and give its rows back; None if there is none that can be read."""
    rows = read_csv(path, layout, sink)
    if rows is None or path is None:
        return None
    if "share" in rows.columns:
        _check_shares(path, rows, sink)
    if level == "type":
        rows = rows.with_columns(type="name")
    write_operators(path, rows, unit, level, sink)
    return rows


def with_counts(path: Path, rows: pl.DataFrame, types: pl.DataFrame | None, sink: Sink) -> pl.DataFrame:
    """Rows of operators, which have `type`, `mean_ms` and perhaps `count`, with `count` and `total_ns`.

    Without a recorded count, as in 1.0, all operators of a type are assumed to run equally often, by the list of types;
    an operator of no such type counts once.
    """
    if rows["count"].null_count():
        rows = _counted_by_type(rows, types)
        lacking = rows["count"].null_count()
        problem = "has average times only; counts of operators are taken from their types"
        if lacking:
            problem = f"{problem}, and {lacking} of {rows.height} without one are counted once"
        sink.issue("note", path, problem, "Nothing to do.", place="line 1")
        rows = rows.with_columns(pl.col("count").fill_null(1))
    return rows.with_columns(total_ns=whole(pl.col("mean_ms") * 1e6 * pl.col("count")))


def _counted_by_type(rows: pl.DataFrame, types: pl.DataFrame | None) -> pl.DataFrame:
    if types is None:
        return rows
    counts = types.group_by("type").agg(ran=pl.sum("count"))
    each = pl.col("ran") / pl.len().over("type")
    counted = rows.join(counts, on="type", how="left", maintain_order="left")
    return counted.with_columns(count=pl.when(each >= 1).then(whole(each))).drop("ran")


def _check_shares(path: Path, rows: pl.DataFrame, sink: Sink) -> None:
    """Note shares, as fractions or in %, that do not match the totals in the same file."""
    if not rows["share"].count() or not (whole := rows["total_ns"].sum()):
        return
    shares = float(rows["share"].sum())
    unit = min(_ROUNDING, key=lambda one: abs(shares - one))
    differing = rows.filter((pl.col("share") - pl.col("total_ns") / whole * unit).abs() > _ROUNDING[unit]).height
    if differing:
        problem = f"the share of {differing} of {rows.height} rows does not match their total time, which is used"
        sink.issue("note", path, problem, "Nothing to do unless rows are missing from the file.")


def write_operators(path: Path, rows: pl.DataFrame, unit: str, level: str, sink: Sink) -> None:
    """Write rows of `operator_totals`; unknown columns are left out, impossible rows are reported.

    They have `name`, `count`, `total_ns`, and more of the table's columns.
    """
    sound = rows.filter(pl.col("count") >= 0, pl.col("total_ns").is_between(0, _LONGEST_NS))
    if lost := rows.height - sound.height:
        problem = f"{lost} of {rows.height} rows have an impossible time or count and are left out"
        sink.issue("error", path, problem, "The file is damaged; copy it again.", lost=lost)
    kept = [name for name in rows.columns if name in OPERATOR_TOTALS.stored_schema]
    named = sound.select(kept).with_columns(unit=pl.lit(unit), level=pl.lit(level))
    sink.write(OPERATOR_TOTALS, named)
