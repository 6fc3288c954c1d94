"""Cutting a recording into chunks of time, so that memory holds one chunk and not the recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import polars as pl

from stepscope.sources.spool import Spool

Name = TypeVar("Name")
_SAMPLED = 64
"""Sample one in this many rows to find where to cut."""


def quantiles(frames: Iterable[pl.DataFrame], column: str, count: int) -> pl.Series:
    """Values of a column that cut its rows into about `count` parts of one size; fewer if many are equal."""
    if count < 2:
        return pl.Series([], dtype=pl.Int64)
    sample: pl.Series = pl.concat([frame[column].gather_every(_SAMPLED) for frame in frames]).drop_nulls().sort()
    places = [len(sample) * k // count for k in range(1, count)]
    cuts: pl.Series = sample.gather([p for p in places if 0 < p < len(sample)]).unique().sort()
    return cuts


def parted(frame: pl.DataFrame, number: pl.Series) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each number, in their order; rows without one are left out."""
    if not number.null_count() and number.min() == number.max():
        if len(number):
            yield number[0], frame
        return
    for one in number.drop_nulls().unique().sort().to_list():
        rows = frame.filter(number == one)
        yield one, rows if 2 * rows.height > frame.height else _on_its_own(rows)


def share_out(frame: pl.DataFrame, number: pl.Series, name: Name, spool: Spool[tuple[int, Name]]) -> None:
    """Put the rows of each number into a spool, under the number and `name`."""
    for one, rows in parted(frame, number):
        spool.add((one, name), rows)


def _on_its_own(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with their own copy of texts: filtered rows would keep the texts of the whole frame in memory."""
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    return rows.with_columns(pl.concat_str([pl.col(name), pl.lit("")]).alias(name) for name in texts)
