"""`pynative_op_intermediate`: operators of PyNative mode by type and by place, in ms."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.operator_counts import known_counts
from stepscope.sources.classic.operator_rows import TYPES, check_shares, short_name, type_of, write_operators
from stepscope.sources.csv_files.layout import Field, FileLayout
from stepscope.sources.csv_files.reading import read_csv

_DETAILS = FileLayout(
    fields=(
        Field("full_name", "text", ("full_op_name", "full_kernel_name", "op_full_name", "op_name"), required=True),
        Field("mean_ms", "float", ("avg_execution_time", "execution_time", "task_duration"), required=True),
        Field("count", "int", ("execution_frequency", "op_occurrences"), expected=True),
        Field("type", "text", ("op_type", "kernel_type")),
        Field("subgraph", "text", ("subgraph",)),
        Field("inputs", "text", ("op_info",)),
    ),
    ignored=frozenset({"op_name", "kernel_name", "serial_number", "task_type"}),
    report_cells=True,
    report_empty=True,
)
UNIT = "PYNATIVE"


def write_pynative(files: RankFiles, sink: Sink) -> None:
    """Write operators by type and by place in the model."""
    types_path, path = files.one("pynative_types"), files.one("pynative_operators")
    types = None if types_path is None else read_csv(types_path, TYPES, sink)
    if types is not None and types_path is not None:
        check_shares(types_path, types, sink)
        types = types.with_columns(type=pl.col("name"))
        write_operators(types_path, types, UNIT, "type", sink)
    rows = None if path is None else read_csv(path, _DETAILS, sink)
    if rows is None or path is None:
        return
    name = short_name(pl.col("full_name"))
    stated = [pl.col("type")] if "type" in rows.columns else []
    rows = rows.with_columns(name=name, type=pl.coalesce(*stated, type_of(name)))
    write_operators(path, known_counts(path, rows, types, sink), UNIT, "operator", sink)
