"""Hardware counters of kernels: recorded names to the columns of `kernel_counters`."""

from __future__ import annotations

from typing import Final

import polars as pl

from stepscope.sources.csv_files.layout import Field
from stepscope.tables import KERNEL_COUNTERS

SPELLINGS: Final = {"aicore_time": "aic_time", "aic_total_time": "aic_time", "aiv_total_time": "aiv_time"}
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


COUNTERS: Final[dict[str, tuple[str, float]]] = {
    recorded: (column.name, factor)
    for column in KERNEL_COUNTERS.columns
    if column.name not in ("rank", "kernel")
    for recorded, factor in (_recorded(column.name),)
}
"""Recorded name (as `column_key` gives it) to our column and the factor between them."""
COUNTERS.update({name: COUNTERS[same] for name, same in SPELLINGS.items()})

CSV_FIELDS: Final = {name: Field(column, "float", (name,)) for name, (column, _) in COUNTERS.items()}
"""The same as columns of a CSV file; values are still in the recorded unit."""


def counters_of(frame: pl.DataFrame) -> dict[str, pl.DataType]:
    """The counter columns that `frame` has, with their type."""
    return {column: pl.Float64() for column, _ in COUNTERS.values() if column in frame.columns}


def scaled(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring the counter columns of `frame` from their recorded unit to ours."""
    # Decimal microseconds times 1000 are whole ns again only after rounding.
    return frame.with_columns(
        (pl.col(name) * factor).round(0 if name.endswith("_ns") else 12)
        for name, factor in dict(COUNTERS.values()).items()
        if factor != 1.0 and name in frame.columns
    )
