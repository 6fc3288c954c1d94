"""Hardware counters of kernels: recorded names to the columns of `kernel_counters`."""

from __future__ import annotations

from functools import cache
from typing import Final

import polars as pl

from stepscope.sources.csv_files.layout import Field
from stepscope.tables import KERNEL_COUNTERS

_SPELLINGS: Final = {"aic_time": ("aicore_time", "aic_total_time"), "aiv_time": ("aiv_total_time",)}
"""Names of the same counter in other files."""

_UNITS: Final = {
    "_time_ns": ("_time", 1000.0),
    "icache_miss_ratio": ("icache_miss_rate", 1.0),
    "cube_utilization_ratio": ("cube_utilization", 0.01),
    "_usage_ratio": ("_bw_usage_rate", 0.01),
    "_cube_bytes_per_s": ("_bw_cube", 1e9),
    "_mte_bytes_per_s": ("_bw_mte", 1e9),
    "_vector_bytes_per_s": ("_bw_vector", 1e9),
    "_scalar_bytes_per_s": ("_bw_scalar", 1e9),
    "_bytes_per_s": ("_bw", 1e9),
    "_main_memory_bytes": ("_main_memory_datas", 1024.0),
    "_bytes": ("_datas", 1024.0),
}
"""End of our column, end of the recorded name, and the factor from recorded to ours; the first that fits.

Recorded are microseconds, GB/s, KB and percent.
"""


def _recorded(column: str) -> tuple[str, float]:
    for ours, (theirs, factor) in _UNITS.items():
        if column.endswith(ours):
            return column.removesuffix(ours) + theirs, factor
    return column, 1.0


_RECORDED: Final = {name: _recorded(name) for name in KERNEL_COUNTERS.stored_schema if name != "kernel"}
"""Our column to the recorded name (as `column_key` gives it) and the factor from recorded to ours."""

COUNTER_FIELDS: Final = tuple(
    Field(column, "float", (name, *_SPELLINGS.get(name, ()))) for column, (name, _) in _RECORDED.items()
)
"""The columns of a CSV file with counters; values are still in the recorded unit."""

COUNTERS: Final = {name: field.column for field in COUNTER_FIELDS for name in field.headers}
"""Recorded name, in any spelling, to our column."""


_UNIT_WORDS: Final = {1000.0: "(us)", 1e9: "(GB/s)", 1024.0: "(KB)", 0.01: "(%)"}
_WRITTEN: Final = {"aic_time": "aicore_time"}
"""Names of which writers use another spelling."""


def recorded_counter(column: str) -> tuple[str, float]:
    """The header under which files have a counter, with its unit, and the factor from recorded to ours.

    Examples:
        >>> recorded_counter("aic_mac_time_ns"), recorded_counter("aic_mac_ratio")
        (('aic_mac_time(us)', 1000.0), ('aic_mac_ratio', 1.0))
    """
    name, factor = _RECORDED[column]
    return _WRITTEN.get(name, name) + _UNIT_WORDS.get(factor, ""), factor


def counters_of(frame: pl.DataFrame) -> dict[str, pl.DataType]:
    """The counter columns that `frame` has, with their type."""
    found = set(frame.columns)
    return {column: pl.Float64() for column in _RECORDED if column in found}


def scaled(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring the counter columns of `frame` from their recorded unit to ours."""
    return frame.with_columns(scale for column in frame.columns if (scale := _scale(column)) is not None)


@cache
def _scale(column: str) -> pl.Expr | None:
    """A column in our unit; None if it is recorded in that, or is no counter."""
    _, factor = _RECORDED.get(column, ("", 1.0))
    # Decimal microseconds times 1000 are whole ns again only after rounding.
    return None if factor == 1.0 else (pl.col(column) * factor).round(0 if column.endswith("_ns") else 12)
