"""How exported files write times, shares and rows, and in which order they list sums."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import polars as pl

from stepscope.recording_format.rows import row_lines
from stepscope.text_columns import filled_in

TICK_NS = 10
"""Step traces count in ticks of a 100 MHz clock."""


def local_time(ns: int | float) -> datetime:
    """A moment in local time, to the millisecond; the start of 1970 if it is none since the epoch."""
    try:
        return datetime.fromtimestamp(ns // 1_000_000 / 1000)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0)


def ms(ns: float) -> float:
    """Milliseconds, exact to the nanosecond."""
    return round(ns / 1e6, 6)


def us(ns: float) -> float:
    """Microseconds, exact to the nanosecond."""
    return round(ns / 1e3, 3)


def ratio(part: float, whole: float) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return round(part / whole, 8) if whole else 0.0


def csv_text(header: str, rows: Iterable[Iterable[object]]) -> str:
    """A CSV file; None is an empty cell."""
    return f"{header}\n{row_lines(rows)}"


def microseconds(column: str | pl.Expr) -> pl.Expr:
    """A time or duration in ns as text, e.g. `1760000000000462.904`; null stays null.

    A float64 holds the time of a day of this century to a quarter of a microsecond only.
    """
    ns = pl.col(column) if isinstance(column, str) else column
    size = ns.abs()
    sign = pl.when(ns < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return filled_in("{}{}.{}", sign, size // 1000, (size % 1000).cast(pl.String).str.zfill(3))


def instants(column: str) -> pl.Expr:
    """Times of a CSV file, with the tab behind them that keeps spreadsheets from rounding them."""
    return microseconds(column) + "\t"


def largest_first(rows: pl.LazyFrame, *by: str, **sums: pl.Expr) -> pl.DataFrame:
    """Sums of rows by some columns, those with the largest first sum first, equal ones in the order of the columns."""
    order = [next(iter(sums)), *by]
    descending = [name in sums for name in order]
    return rows.group_by(by).agg(**sums).sort(order, descending=descending).collect()
