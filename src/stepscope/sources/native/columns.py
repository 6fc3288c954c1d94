"""Columns of what the decoder scans: one field of its rows, and all of a CSV table of plain fields."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import polars as pl

from stepscope.sources.native.library import NewColumn, Refused, int32s, loaded

ColumnKind = Literal[
    "text",
    "json",
    "int",
    "float",
    "time",
    "small",
    "duration",
    "time_ns",
    "ticks",
    "time_ms",
    "finite",
    "cut",
    "cut_small",
    "us",
    "ms",
    "kib",
    "mib",
    "gib",
]
"""Strings; JSON as it is written; int64; float64; decimal us as exact int64 ns; int32, null if it does not fit; us from
0 to a week as int64 ns; ns, 10 ns and ms as exact int64 ns. From `finite` on for numbers of CSV tables, null if they do
not fit: float64; int64 and int32 without decimals; us and ms as the nearest int64 ns; sizes as the nearest int64 bytes.
"""
_KINDS: dict[ColumnKind, int] = {kind: code for code, kind in enumerate(get_args(ColumnKind))}

_MOST_PLACES = 2048
"""Of a chunk."""

TableColumn = Literal[
    "raw",
    "text",
    "shape",
    "time",
    "time_ns",
    "ticks",
    "time_ms",
    "float",
    "int",
    "small",
    "duration",
    "ms",
    "kib",
    "mib",
    "gib",
]
"""How a field of a CSV table is kept: as it is written, without spaces around it, without quotes around it, as exact ns
(from decimal us, ns, 10 ns or ms), or as a number: float64, int64 or int32 without decimals, the nearest ns (from us or
ms) or bytes."""
_TIME, _NUMBER = 4, 5
_READ: dict[TableColumn | None, tuple[int, ColumnKind]] = {
    None: (0, "text"),
    "raw": (1, "text"),
    "text": (2, "text"),
    "shape": (3, "text"),
    "time": (_TIME, "time"),
    "time_ns": (_TIME, "time_ns"),
    "ticks": (_TIME, "ticks"),
    "time_ms": (_TIME, "time_ms"),
    "float": (_NUMBER, "finite"),
    "int": (_NUMBER, "cut"),
    "small": (_NUMBER, "cut_small"),
    "duration": (_NUMBER, "us"),
    "ms": (_NUMBER, "ms"),
    "kib": (_NUMBER, "kib"),
    "mib": (_NUMBER, "mib"),
    "gib": (_NUMBER, "gib"),
}
"""How the field is looked up in the text, and how its column is made."""


def read_column(
    scan: int, text: bytes | int, field: int, kind: ColumnKind, start: int, count: int, name: str = ""
) -> pl.Series:
    """One field of `count` rows from `start` on.

    Raises:
        Refused: If a value is for Python to judge.
    """
    column = NewColumn()
    if loaded().ss_column(scan, text, field, start, count, _KINDS[kind], *column.pointers) < 0:
        raise Refused
    return column.series(name)


class FieldColumn(NamedTuple):
    """A column that a field of events becomes."""

    name: str
    field: int
    kind: ColumnKind


def read_columns(
    scan: int, text: bytes | int, wanted: Sequence[FieldColumn], start: int, count: int
) -> list[pl.Series]:
    """Some fields of `count` rows from `start` on, in one step; at least one.

    Raises:
        Refused: If a value is for Python to judge.
    """
    made = NewColumn()
    fields, kinds = int32s([one.field for one in wanted]), int32s([_KINDS[one.kind] for one in wanted])
    if loaded().ss_columns(scan, text, fields, kinds, len(wanted), start, count, *made.pointers) < 0:
        raise Refused
    return made.frame([one.name for one in wanted]).get_columns()


def read_places(
    scan: int, text: bytes | int, count: int, numbered: Callable[[Sequence[int]], Sequence[int]]
) -> pl.Series:
    """A number for the process and thread of each of the first `count` events.

    Args:
        scan: The events.
        text: Their text.
        count: How many.
        numbered: Gives the numbers of places, from an event of each. A place that is written in two ways comes twice.

    Raises:
        Refused: If a value is for Python to judge, or there are very many places.
    """
    native, column = loaded(), NewColumn()
    places, firsts = (ctypes.c_int32 * max(count, 1))(), (ctypes.c_int32 * _MOST_PLACES)()
    known = native.ss_places(scan, text, count, places, firsts, _MOST_PLACES)
    if known < 0:
        raise Refused
    meant = int32s(list(numbered(firsts[:known])))
    if native.ss_meant(places, count, meant, *column.pointers) < 0:
        raise Refused
    return column.series("place")


def read_table(text: bytes, columns: Sequence[TableColumn | None], names: Sequence[str]) -> list[pl.Series]:
    """The columns of a CSV table with a header; `N/A`, `NA` and empty fields are null.

    Args:
        text: The whole file.
        columns: How each of its columns is kept; None leaves one out.
        names: What those that are kept are called.

    Raises:
        Refused: If the table has anything but whole lines of plain fields.
    """
    native = loaded()
    scan = native.ss_table(text, len(text), int32s([_READ[column][0] for column in columns]), len(columns))
    if not scan:
        raise Refused
    try:
        kinds = (_READ[column][1] for column in columns if column is not None)
        wanted = [FieldColumn(name, n, kind) for n, (name, kind) in enumerate(zip(names, kinds, strict=True))]
        return read_columns(scan, text, wanted, 0, native.ss_count(scan)) if wanted else []
    finally:
        native.ss_free(scan)
