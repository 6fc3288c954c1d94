"""A table to show, as plain data that any surface lays out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.present import title
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ShownTable:
    """A table to show.

    Args:
        heading: Its heading.
        columns: Its columns, each with its title and importance.
        rows: Its rows; moments count from the start that the heading names.
        bar: Column whose values are shown as bars as well; empty if none.
    """

    heading: str
    columns: Sequence[Column]
    rows: pl.DataFrame
    bar: str = ""


def undeclared(rows: pl.DataFrame, heading: str = "") -> ShownTable:
    """A table about whose columns nothing is declared: titles are their names, and all are equally important."""
    return ShownTable(heading, [Column(name, "string", "", title=title(name)) for name in rows.columns], rows)
