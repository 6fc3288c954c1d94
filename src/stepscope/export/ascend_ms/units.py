"""Values in the units of the format: times are microseconds with three decimals, as exact text."""

from __future__ import annotations

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.tables.steps import WHOLE_RECORDING

MEGABYTE = 1_000_000
"""Of communication; memory files count in units of 2^20."""


def microseconds(column: str | pl.Expr) -> pl.Expr:
    """A time or duration in ns as text, e.g. `1760000000000462.904`; null stays null.

    A float64 holds the time of a day of this century to a quarter of a microsecond only.
    """
    ns = pl.col(column) if isinstance(column, str) else column
    size = ns.abs()
    sign = pl.when(ns < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return pl.format("{}{}.{}", sign, size // 1000, (size % 1000).cast(pl.String).str.zfill(3))


def instants(column: str) -> pl.Expr:
    """Times of a CSV file, with the tab behind them that keeps spreadsheets from rounding them."""
    return microseconds(column) + "\t"


def step_word(step: int) -> str:
    """A step as the JSON files name it; a recording without steps has the number 0 and no number there."""
    return f"step{step}"


def has_steps(export: RankExport) -> bool:
    """Whether the recording has steps, and not only one window around all of it."""
    steps = export.rows("steps")
    return bool((steps["window"] != WHOLE_RECORDING).any())


def csv_text(frame: pl.DataFrame, missing: str = "") -> str:
    """A frame as CSV; null is `missing`."""
    return frame.write_csv(null_value=missing)
