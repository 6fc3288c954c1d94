"""Distinct texts; `sources/distinct.py` says what for and does the same in Python."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded


def distinct(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """For each text the number of the distinct one (null for null), and the row of the first of each of these.

    Raises:
        Refused: If there are no texts, many different or long ones, not enough memory, or the column is anything else.
    """
    native, numbers, firsts, given = loaded(), NewColumn(), NewColumn(), GivenColumns(texts)
    if native.ss_distinct(*given.pointers, len(texts), *numbers.pointers, *firsts.pointers) < 0:
        raise Refused
    return numbers.series(), firsts.series()
