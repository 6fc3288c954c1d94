"""A value over time as a row of blocks, for tables of many moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

BLOCKS = "·░▒▓█"
"""From zero to the highest value of all rows, in equal parts above zero."""

CELLS = 40


def drawn(rows: pl.DataFrame, keys: Sequence[str], value: str, name: str = "over_time") -> pl.DataFrame:
    """One row for each series, with its values over time as blocks.

    Args:
        rows: `keys`, `start_ns` in order and the value, at the same times for all series of a rank.
        keys: What makes a series; the first is the rank.
        value: The column to draw; of several moments in a cell the highest counts.
        name: Name of the column of blocks.
    """
    import polars as pl

    most = rows.group_by(keys[0]).agg(highest=pl.col(value).max())
    first, last = (getattr(pl.col("start_ns"), which)().over(keys[0]) for which in ("min", "max"))
    width = pl.max_horizontal((last - first) // CELLS + 1, pl.lit(1))
    level = pl.when(pl.col(value) > 0).then((pl.col(value) / pl.col("highest") * 4).ceil()).otherwise(0).cast(pl.Int64)
    cells = (
        rows.with_columns(cell=(pl.col("start_ns") - first) // width)
        .join(most, on=keys[0], maintain_order="left")
        .group_by(*keys, "cell", maintain_order=True)
        .agg(level=level.max())
        .sort(*keys, "cell", nulls_last=True)
    )
    blocks = pl.col("level").replace_strict(dict(enumerate(BLOCKS)), return_dtype=pl.String)
    return cells.group_by(keys, maintain_order=True).agg(blocks.str.join("").alias(name))
