"""Sorting rows by several columns of which few decide: Polars takes 30 times as long for two columns as for one."""

from __future__ import annotations

import polars as pl

SAMPLE = 1000
"""Rows that show whether a column has few different values."""


def in_order(rows: pl.DataFrame, *keys: str, nulls_last: bool = False) -> pl.DataFrame:
    """As `rows.sort(keys, nulls_last=nulls_last, maintain_order=True)`: rows are sorted by the first column that
    varies, and by the others only where that is the same. If that is nearly everywhere, e.g. for ranks, by both at once
    as one number, or by the others first."""
    varying = [key for key in keys if not is_alike(rows[key])]
    if not varying:
        return rows
    first = varying[0]
    if len(varying) > 1 and _repeats(rows[first]):
        both = _as_one(rows[first], rows[varying[1]])
        if both is not None:
            name = f"_{first}"  # another one where these numbers repeat as well
            numbered = rows.with_columns(both.alias(name))
            return in_order(numbered, name, *varying[2:], nulls_last=nulls_last).drop(name)
        narrow = in_order(rows.select(varying).with_row_index("_row"), *varying[1:], nulls_last=nulls_last)
        return rows[_by(narrow.select("_row", first), first, nulls_last=nulls_last)["_row"]]
    ordered = _by(rows, first, nulls_last=nulls_last)
    if len(varying) == 1:
        return ordered
    values = ordered[first]
    goes_on = pl.concat([values[:-1].eq_missing(values[1:]), pl.Series([False])])
    places = (goes_on | goes_on.shift(1, fill_value=False)).arg_true()
    if places.is_empty():
        return ordered
    by = pl.arg_sort_by(varying, nulls_last=nulls_last, maintain_order=True)
    order = ordered.select(varying)[places].select(by).to_series()
    moved = pl.int_range(rows.height, eager=True).scatter(places, places.gather(order).cast(pl.Int64))
    return ordered[moved]


def _as_one(values: pl.Series, others: pl.Series) -> pl.Series | None:
    """One number for each row, in order of two columns of numbers; None if there is no such number.

    Rows that come rank by rank, each in order of time, are then sorted or nearly so.
    """
    both = (values, others)
    if any(not column.dtype.is_integer() or column.null_count() for column in both):
        return None
    (low, high), (least, most) = ((int(column.min()), int(column.max())) for column in both)  # type: ignore[arg-type]
    room = most - least + 1
    if max(abs(low), abs(high), abs(least), abs(most)) >= 2**63 or (high - low + 1) * room >= 2**63:
        return None
    first, second = (column.cast(pl.Int64) for column in both)
    numbers: pl.Series = (first - low) * room + (second - least)
    return numbers


def _by(rows: pl.DataFrame, key: str, *, nulls_last: bool) -> pl.DataFrame:
    """The rows sorted by one column; those with the same value stay in their order."""
    if rows[key].null_count() == 0 and rows[key].is_sorted():
        return rows
    return rows.sort(key, nulls_last=nulls_last, maintain_order=True)


def _repeats(values: pl.Series) -> bool:
    """Whether a sample has few different values."""
    some = values.gather_every(max(1, len(values) // SAMPLE))
    return 2 * some.n_unique() < len(some)


def is_alike(values: pl.Series) -> bool:
    """Whether all values are the same."""
    if nulls := values.null_count():
        return nulls == len(values)
    return values.is_empty() or (bool(values[0] == values[-1]) and values.min() == values.max())
