"""Values of answers for spreadsheets: numbers in a unit that people read, texts that are safe anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from stepscope import present

if TYPE_CHECKING:
    from stepscope.report.items import Item
    from stepscope.tables.base import Column

LONGEST_TEXT = 2_000
"""Characters of a text in a cell: names in a recording may have any length."""

UNITS = {
    "_ns": ("ms", 1e-6, "0.000"),
    "_ratio": ("%", 1.0, "0.0%"),
    "_factor": ("x", 1.0, "0.00"),
    "bytes_per_s": ("GB/s", 1e-9, "0.00"),
    "bytes": ("MB", 1e-6, "#,##0.000"),
    "flops_per_s": ("TFLOP/s", 1e-12, "0.000"),
    "flops": ("GFLOP", 1e-9, "0.000"),
}
"""Ends of names: the unit in a sheet, the factor to it, and how numbers in it are shown."""


@dataclass(frozen=True)
class Figure:
    """A column of a sheet.

    Args:
        title: Its title with its unit.
        origin: What is subtracted from each value: moments count from the start of the recording.
        factor: Then each value is multiplied by this.
    """

    name: str
    title: str
    is_number: bool
    factor: float = 1.0
    number_format: str = ""
    origin: float = 0.0

    @property
    def scales(self) -> bool:
        """Whether values change."""
        return self.factor != 1.0 or self.origin != 0.0


def figure_of(column: Column, item: Item, start_ns: int | None) -> Figure:
    """How a sheet shows a column of an item.

    Args:
        start_ns: Start of the recording; moments long before or after it count from the first of their column.
    """
    values = item.rows[column.name]
    if not values.dtype.is_numeric():
        return Figure(column.name, column.title, False)
    ending = next((ending for ending in UNITS if column.name.endswith(ending)), None)
    if ending is None:
        return Figure(column.name, column.title, True, number_format="0.00" if values.dtype.is_float() else "0")
    unit, factor, number_format = UNITS[ending]
    origin = float(_origin(values, start_ns)) if column.moment else 0.0
    title = column.title if column.title.endswith(unit) else f"{column.title} ({unit})"
    return Figure(column.name, title, True, factor, number_format, origin)


_NEAR_NS = 86_400 * 10**9


def _origin(moments: pl.Series, start_ns: int | None) -> int:
    first = moments.min()
    if not isinstance(first, int):
        return 0
    return start_ns if start_ns is not None and abs(first - start_ns) < _NEAR_NS else first


def plain_texts(values: pl.Series) -> list[str | None]:
    """Values that are no numbers as texts."""
    if isinstance(values.dtype, pl.List):
        values = values.cast(pl.List(pl.String)).list.join(", ")
    return [None if value is None else present.printable(str(value)[:LONGEST_TEXT]) for value in values.to_list()]
