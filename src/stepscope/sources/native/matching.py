"""Which row belongs to each value; `sources/matching.py` says what that means and does the same in Python."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded


def match(keys: pl.Series, among: pl.Series) -> pl.Series:
    """The first row of `among` with each key. Both are Int64 and may have nulls.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, found, given = loaded(), NewColumn(), GivenColumns(keys, among)
    of_keys, of_others = given.pointers
    if native.ss_match(of_keys, len(keys), of_others, len(among), *found.pointers) < 0:
        raise Refused
    return found.series()


def neighbours(first: pl.Series, second: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The rows before and behind each one with the same two keys, which are Int64 and may be null.

    Raises:
        Refused: If there are no rows, not enough memory, or the columns are anything else.
    """
    native, before, behind, given = loaded(), NewColumn(), NewColumn(), GivenColumns(first, second)
    if native.ss_neighbours(*given.pointers, len(first), *before.pointers, *behind.pointers) < 0:
        raise Refused
    return before.series(), behind.series()


def hold(times: pl.Series, starts: pl.Series, ends: pl.Series) -> pl.Series:
    """The last range that starts at each time or before it, if it ends later. All are Int64; times may be null.

    Raises:
        Refused: If there is not enough memory, starts do not rise, or the columns are anything else.
    """
    native, found, given = loaded(), NewColumn(), GivenColumns(times, starts, ends)
    of_times, *of_ranges = given.pointers
    if len(starts) != len(ends):
        raise Refused
    if native.ss_hold(of_times, len(times), *of_ranges, len(starts), *found.pointers) < 0:
        raise Refused
    return found.series()
