"""Values of CSV files in our units."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.sources.csv_files.layout import Field, Kind

FACTORS: dict[Kind, int] = {"duration": 1000, "ms": 10**6, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
EXACT: dict[Kind, int] = {"time": 3, "time_ms": 6, "time_ns": 0, "ticks": 1}
"""Decimal places by which the unit of an exact time is above the nanosecond."""
READ_AS: dict[Kind, type[pl.DataType]] = {
    "text": pl.String,
    "shape": pl.String,
    "device": pl.String,
    **dict.fromkeys(EXACT, pl.String),
}
"""How a kind is read; all others are read as float64, which holds every integer that occurs."""
KEPT_AS: dict[Kind, type[pl.DataType]] = {
    **dict.fromkeys(("text", "shape"), pl.String),
    **dict.fromkeys(("device", "small"), pl.Int32),
    "float": pl.Float64,
}
"""The type of the values of a kind; all others are whole numbers of 64 bits."""


def in_our_unit(column: pl.Expr, field: Field) -> pl.Expr:
    """A column as it is read (see `READ_AS`) as values of its field."""
    if field.kind in FACTORS:
        return whole(column * FACTORS[field.kind])
    if field.kind in EXACT:
        return nanoseconds(column, EXACT[field.kind])
    as_kept: dict[Kind, Callable[[pl.Expr], pl.Expr]] = {
        "shape": lambda text: text.str.strip_chars('"'),
        "text": lambda text: text.str.strip_chars(),
        "device": lambda text: text.str.extract(r"(\d+)\s*$").cast(pl.Int32, strict=False),
        "int": lambda number: number.cast(pl.Int64, strict=False),
        "small": lambda number: number.cast(pl.Int32, strict=False),
        "float": lambda number: pl.when(number.is_finite()).then(number),
    }
    return as_kept[field.kind](column)


def whole(value: pl.Expr) -> pl.Expr:
    """The nearest integer; null for what is none (infinite, not a number)."""
    return value.round().cast(pl.Int64, strict=False)


def nanoseconds(text: pl.Expr, places: int = 3) -> pl.Expr:
    """A time as text, e.g. `1760000000000462.904` with or without a tab after it, as exact ns of 64 bits, else null.

    A float64 holds such a time to a quarter of a microsecond only, so the two halves are read as integers.

    Args:
        text: The time.
        places: Decimal places by which its unit is above the nanosecond: 3 for microseconds.
    """
    stripped = text.str.strip_chars(' \t"')
    parts = stripped.str.splitn(".", 2)
    whole_part: pl.Expr = parts.struct.field("field_0").cast(pl.Int64, strict=False)
    if not places:
        return whole_part
    digits = parts.struct.field("field_1").fill_null("").str.pad_end(places, "0").str.slice(0, places)
    fraction = digits.cast(pl.UInt32, strict=False).cast(pl.Int64)
    signed = pl.when(stripped.str.starts_with("-")).then(-fraction).otherwise(fraction)
    largest = 2**63 // 10**places - 1
    fitting = pl.when(whole_part.is_between(-largest, largest)).then(whole_part)
    return fitting * pl.lit(10**places, pl.Int64) + signed
