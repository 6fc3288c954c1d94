"""Ancestors of ranges; `sources/ancestors.py` says what that means and does the same in Python."""

from __future__ import annotations

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded


def climb(rows: pl.Series, parents: pl.Series, wanted: pl.Series) -> pl.Series:
    """The nearest wanted row to each row: itself or an ancestor.

    All columns are Int64; `rows` and `parents` may have nulls.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, found = loaded(), NewColumn()
    given = GivenColumns(rows, parents, wanted)
    of_rows, of_parents, of_wanted = given.pointers
    lengths = len(rows), len(parents), len(wanted)
    if native.ss_climb(of_rows, lengths[0], of_parents, lengths[1], of_wanted, lengths[2], *found.pointers) < 0:
        raise Refused
    return found.series()


def running(
    threads: pl.Series,
    starts: pl.Series,
    durations: pl.Series,
    parents: pl.Series,
    wanted: int,
    moment_threads: pl.Series,
    times: pl.Series,
) -> pl.Series:
    """The innermost of the first `wanted` ranges that is running at each moment on its thread.

    All columns are Int64; `parents` may have nulls, and threads are small numbers from 0 on.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    native, found = loaded(), NewColumn()
    most = [threads.max(), moment_threads.max()]
    numbers = [number for number in most if isinstance(number, int)]
    if len(numbers) < 2:
        raise Refused
    given = GivenColumns(threads, starts, durations, parents, moment_threads, times)
    ranges, moments = (given.pointers[:4], len(threads), wanted), (given.pointers[4:], len(times), max(numbers) + 1)
    status = native.ss_running(*ranges[0], *ranges[1:], *moments[0], *moments[1:], *found.pointers)
    if status < 0:
        raise Refused
    return found.series()
