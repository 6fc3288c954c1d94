"""Text of a CSV table -> columns, for tables of plain fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from stepscope.sources.native.columns import ColumnKind, read_column
from stepscope.sources.native.library import Refused, int32s, loaded

TableColumn = Literal["raw", "text", "shape", "time", "number"]
"""How a field of a CSV table is kept: as it is written, without spaces around it, without quotes around it, as exact ns
(from decimal us), or as float64."""
_CODES: dict[TableColumn | None, int] = {None: 0, "raw": 1, "text": 2, "shape": 3, "time": 4, "number": 5}
_READ_AS: dict[TableColumn, ColumnKind] = {"time": "time", "number": "float"}


def read_table(text: bytes, columns: Sequence[TableColumn | None]) -> list[pl.Series]:
    """The columns of a CSV table with a header; `N/A`, `NA` and empty fields are null.

    Args:
        text: The whole file.
        columns: How each of its columns is kept; None leaves one out.

    Raises:
        Refused: If the table has anything but whole lines of plain fields.
    """
    native = loaded()
    scan = native.ss_table(text, len(text), int32s([_CODES[column] for column in columns]), len(columns))
    if not scan:
        raise Refused
    try:
        rows = native.ss_count(scan)
        kept = [column for column in columns if column is not None]
        return [read_column(scan, text, n, _READ_AS.get(column, "text"), 0, rows) for n, column in enumerate(kept)]
    finally:
        native.ss_free(scan)
