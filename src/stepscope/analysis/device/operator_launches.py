"""Which kernels each operator launches itself, how long it takes to launch them, and how long they wait."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.kernel_lists import as_text, callers, numbered_kernels, sequences
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

NO_OPERATORS = "no device work with a known operator was recorded"

SEQUENCE = Column(
    "sequence", "string", "Names of the kernels in the order of their launches; `(x3)`: three in a row.", importance=52
)

_COLUMNS = columns(
    "rank",
    Column("operator", "string", "Operator that launches them."),
    Column("count", "int64", "Calls of the operator with this sequence.", importance=61),
    Column("to_launch_ns", "int64", "Mean time from its start to its first launch; null if not known.", importance=58),
    Column(
        "to_start_ns",
        "int64",
        "Mean time from the start of the first launch to that of its work; null if not known.",
        importance=57,
    ),
    Column("kernel_ns", "int64", "Time of all kernels of these calls.", importance=56),
    Column("kernels", "int64", "Kernels of one call.", importance=54),
    SEQUENCE,
    nulls="to_launch_ns to_start_ns",
    keep="operator",
)


@analysis("rank", _COLUMNS, together=True, nothing=NO_OPERATORS)
def operator_launches(
    kernels: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame | None, shown: int = 20
) -> pl.DataFrame:
    """Sum up what operators launch themselves, not by the operators that they call: one row per operator and sequence
    of kernels, the longest kernel time first.

    Args:
        kernels: Device work, with copies and fills.
        operators: Operators.
        slices: Ranges of the host, among them the calls that launch.
        shown: Entries of a sequence to write out; 0 for all.
    """
    rows, names = numbered_kernels(kernels, owners(kernels, operators, slices))
    called = callers(operators, sequences(rows), "name", "start_ns")
    sums = called.group_by("rank", pl.col("name").alias("operator"), "sequence").agg(
        count=pl.len().cast(pl.Int64),
        pairs=pl.col("launch_ns").count().cast(pl.Int64),
        launch_ns=(pl.col("launch_ns") - pl.col("start_ns")).sum(),
        wait_ns=(pl.col("first_ns") - pl.col("launch_ns")).sum(),
        kernel_ns=pl.col("kernel_ns").sum(),
        kernels=pl.col("kernels").first(),
    )
    known = pl.when(pl.col("pairs") > 0)
    found = sums.with_columns(
        to_launch_ns=known.then(rounded(pl.col("launch_ns") / pl.col("pairs"))),
        to_start_ns=known.then(rounded(pl.col("wait_ns") / pl.col("pairs"))),
    )
    told = as_text(found, names, shown).select(column.name for column in _COLUMNS)
    return told.sort("rank", -pl.col("kernel_ns"), -pl.col("count"), "operator", "sequence")
