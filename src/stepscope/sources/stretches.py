"""Cutting a recording into stretches of time, so that memory holds one stretch and not the recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

_SAMPLED = 64
"""One of so many rows is enough to find where to cut."""


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


def _on_its_own(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with a copy of their texts: filtered rows keep alive those of the whole frame that they come from."""
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    return rows.with_columns(pl.concat_str([pl.col(name), pl.lit("")]).alias(name) for name in texts)


def unfinished(ends: pl.Series, parent: pl.Series, end_ns: int | None) -> pl.Series | None:
    """Which ranges of a stretch the next one needs as well: they, or ranges in them, end at `end_ns` or later.

    Args:
        ends: End of each range, ns.
        parent: Row number of the enclosing range, null at the top.
        end_ns: Where the next stretch begins; None if there is none.

    Returns:
        A mask; None if no range goes on.
    """
    if end_ns is None:
        return None
    goes_on = ends >= end_ns  # what happens at the very end of a range still counts as in it
    found = goes_on.arg_true()
    if found.is_empty():
        return None
    while len(found):  # a range may end before one that began in it
        above = parent.gather(found).drop_nulls().unique()
        found = above.filter(~goes_on.gather(above))
        goes_on = goes_on.scatter(found, True)
    return goes_on
