"""Which range encloses which; `sources/nesting.py` says what that means and does the same in Python."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded


def nest(threads: pl.Series, starts: pl.Series, durations: pl.Series) -> pl.DataFrame:
    """`parent` (row of the enclosing range, null at the top) and `depth` of ranges in any order.

    All columns are Int64; `threads` are small numbers from 0 on.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, most = loaded(), threads.max()
    if not isinstance(most, int):
        raise Refused
    parent, depth = NewColumn(), NewColumn()
    given = GivenColumns(threads, starts, durations)
    if native.ss_nest(*given.pointers, len(threads), most + 1, *parent.pointers, *depth.pointers) < 0:
        raise Refused
    return pl.DataFrame([parent.series("parent"), depth.series("depth")])


def time_inside(starts: pl.Series, durations: pl.Series, parents: pl.Series) -> pl.Series:
    """Time of each range that its direct children take, as far as they lie in it.

    All columns are Int64; `parents` are as `nest` gives them.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, spent = loaded(), NewColumn()
    if parents.dtype != pl.Int64 or not len(parents):
        raise Refused
    given = GivenColumns(starts, durations, parents)
    if native.ss_inside(*given.pointers, len(parents), *spent.pointers) < 0:
        raise Refused
    return spent.series()
