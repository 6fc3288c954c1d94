"""Values of a SQLite file as columns: affinities are loose there, so a column may hold values of several kinds."""

from __future__ import annotations

from typing import Any

import polars as pl


def as_series(name: str, values: tuple[Any, ...], dtype: type[pl.DataType]) -> pl.Series:
    """One column; a value that its type does not hold becomes null."""
    try:
        return pl.Series(name, values, dtype=dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, [_as(value, dtype) for value in values], dtype=dtype)


def _as(value: Any, dtype: type[pl.DataType]) -> Any:
    """One value as `dtype` holds it; null if it does not."""
    try:
        if value is None or isinstance(value, bytes):
            return None
        if dtype == pl.String:
            return str(value)
        if dtype == pl.Float64:
            return float(value)
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else None
    except (ValueError, OverflowError):
        return None
