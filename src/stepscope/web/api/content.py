"""Answers as JSON: frames become lists of rows, columns are described, and nothing is written that is no JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.pages.answering import plain_rows
from stepscope.pages.shown_table import ShownTable
from stepscope.tables.base import Column

EXACT = 1 << 53
"""Whole numbers up to this are exact in JavaScript."""


def encoded(found: Any, *, big_as_text: bool = False) -> bytes:
    """Plain data with frames in it as JSON; numbers that are not finite are null.

    Args:
        big_as_text: Whole numbers beyond 2^53 are texts.
    """
    plain = _plain(found, big_as_text=big_as_text)
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:  # a name of a file that is no UTF-8
        return msgspec.json.encode(_readable(plain))


def described(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """Columns for programs: name, title, type, unit and meaning."""
    return [
        {
            "name": column.name,
            "title": column.title or column.name,
            "type": column.dtype,
            "unit": column.unit,
            "meaning": column.doc,
            "moment": column.moment,
            "values": list(column.values),
        }
        for column in columns
    ]


def described_table(table: ShownTable) -> dict[str, Any]:
    """A table that people see, for programs."""
    return {"heading": table.heading, "columns": described(table.columns), "rows": table.rows}


def undeclared_columns(schema: Mapping[str, pl.DataType]) -> list[dict[str, Any]]:
    """Columns about which nothing is declared: name and type."""
    return [{"name": name, "type": str(dtype)} for name, dtype in schema.items()]


def _plain(found: Any, *, big_as_text: bool) -> Any:
    if isinstance(found, pl.DataFrame):
        rows = plain_rows(found)
        return [_plain(row, big_as_text=True) for row in rows] if big_as_text and _has_big(found) else rows
    if isinstance(found, Mapping):
        return {str(key): _plain(value, big_as_text=big_as_text) for key, value in found.items()}
    if isinstance(found, Sequence) and not isinstance(found, str | bytes):
        return [_plain(value, big_as_text=big_as_text) for value in found]
    if big_as_text and isinstance(found, int) and abs(found) > EXACT:
        return str(found)
    return found


def _has_big(frame: pl.DataFrame) -> bool:
    """Whether a frame may have numbers beyond 2^53."""
    for column in frame.get_columns():
        if column.dtype.is_nested():
            return True
        if column.dtype.is_integer() and column.len() > column.null_count():
            low, high = column.min(), column.max()
            if max(abs(int(low)), abs(int(high))) > EXACT:  # type: ignore[arg-type]
                return True
    return False


def _readable(found: Any) -> Any:
    if isinstance(found, str):
        return found.encode("utf-8", "backslashreplace").decode()
    if isinstance(found, dict):
        return {_readable(key): _readable(value) for key, value in found.items()}
    return [_readable(value) for value in found] if isinstance(found, list) else found
