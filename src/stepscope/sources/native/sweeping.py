"""Ranges of time by rank; `analysis/methods/intervals.py` says what these mean and does the same in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded, pointers

_RANGE = ("rank", "start_ns", "end_ns")
_PIECE = ("rank", "window", "start_ns", "duration_ns", "active")


def union(ranges: pl.DataFrame) -> pl.DataFrame:
    """The ranges (`rank`, `start_ns`, `end_ns`, all Int64) of each rank, joined where they touch or overlap, in order.

    Raises:
        Refused: If there is not enough memory, ranks fall, starts are far from rising, or the columns are anything
            else.
    """
    native = loaded()
    if ranges.is_empty():
        return ranges.select(_RANGE)
    given, found = GivenColumns(*(ranges[name] for name in _RANGE)), [NewColumn() for _ in _RANGE]
    if native.ss_union(pointers(given.pointers), len(ranges), *_targets(found)) < 0:
        raise Refused
    return pl.DataFrame([column.series(name) for name, column in zip(_RANGE, found, strict=True)])


def sweep(layers: Sequence[pl.DataFrame], windows: pl.DataFrame, *, whole: bool) -> pl.DataFrame:
    """Cut windows into pieces in which the set of active layers does not change; or, `whole`, sum those of one window
    that are alike.

    Args:
        layers: `rank`, `start_ns` and `end_ns`, all Int64, of at least one range.
        windows: The same and `window`, a number from 0 on.
        whole: Whether to sum.

    Returns:
        `rank`, `window`, `start_ns` (of the first), `duration_ns` and `active`, which has a bit for each layer.

    Raises:
        Refused: If there is not enough memory, ranks, starts or ends are not in order, a range does not last, or the
            columns are anything else.
    """
    native = loaded()
    every, found = [*layers, windows], [NewColumn() for _ in _PIECE]
    given = GivenColumns(*(one[name] for one in every for name in _RANGE), windows["window"])
    rows = (ctypes.c_int64 * len(every))(*map(len, every))
    if native.ss_sweep(pointers(given.pointers), rows, len(every), whole, *_targets(found)) < 0:
        raise Refused
    return pl.DataFrame([column.series(name) for name, column in zip(_PIECE, found, strict=True)])


def _targets(columns: Sequence[NewColumn]) -> list[ctypes.Array[ctypes.c_void_p]]:
    """Where the library puts the columns: their arrays and their schemas."""
    return [pointers([column.addresses[part] for column in columns]) for part in (0, 1)]
