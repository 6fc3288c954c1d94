"""Columns from spans: one field of the rows of a scan at a time."""

from __future__ import annotations

from typing import Literal

import polars as pl

from stepscope.sources.native.library import NewColumn, Refused, loaded

ColumnKind = Literal["text", "json", "int", "float", "time"]
"""Strings; JSON as it is written; int64; float64; decimal us as exact int64 ns."""
_KINDS: dict[ColumnKind, int] = {"text": 0, "json": 1, "int": 2, "float": 3, "time": 4}


def read_column(
    scan: int, text: bytes, field: int, kind: ColumnKind, start: int, count: int, name: str = ""
) -> pl.Series:
    """One field of `count` rows from `start` on.

    Raises:
        Refused: If a value is for Python to judge.
    """
    column = NewColumn()
    if loaded().ss_column(scan, text, field, start, count, _KINDS[kind], *column.pointers) < 0:
        raise Refused
    return column.series(name)
