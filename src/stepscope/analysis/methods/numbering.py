"""Numbers for what several columns name together: one number is compared many times sooner than texts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import polars as pl

_LARGEST = 1 << 62


def numbered(rows: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """A number for each row, the same for rows that are alike in some columns of numbers or texts; null is a value.

    Examples:
        >>> rows = pl.DataFrame({"at": [3, 4, 3, 3], "by": ["a", "a", "a", None]})
        >>> numbered(rows, ["at", "by"]).to_list()
        [0, 2, 0, 1]
    """
    columns = [_places(rows[name]) for name in names]
    sizes = [_largest(column) + 1 for column in columns]
    if prod(sizes) > _LARGEST:
        return rows.select(pl.struct(names).rank("dense").cast(pl.Int64)).to_series()
    number: pl.Series = pl.Series("number", [0], dtype=pl.Int64).new_from_index(0, rows.height)
    for column, size in zip(columns, sizes, strict=True):
        number = number * size + column
    return number


def _places(column: pl.Series) -> pl.Series:
    """Integers from 0 on instead of the values of a column."""
    number: pl.Series
    if column.dtype.is_integer():
        number = column.cast(pl.Int64)
        low = number.min()
        number = number - (low if isinstance(low, int) else 0)
        return number.fill_null(_largest(number) + 1) if number.null_count() else number
    values = column.drop_nulls().unique(maintain_order=True)
    number = column.replace_strict(values, range(len(values)), default=len(values), return_dtype=pl.Int64)
    return number


def _largest(column: pl.Series) -> int:
    value = column.max()
    return value if isinstance(value, int) else 0
