"""Packets of a timeline; `timeline/writing/packets.py` says what they are and makes the same in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate

import polars as pl

from stepscope.sources.native.library import GivenColumns, Refused, loaded, pointers


def packets(
    events: pl.DataFrame, numbers: pl.DataFrame, flows: pl.DataFrame, texts: Sequence[Sequence[bytes]]
) -> bytes:
    """The packets of events, see `timeline/writing/packets.py`.

    Args:
        events: `at`, `track` and `body`, Int64 without nulls; a body below 0 is the end of a range.
        numbers: Whole numbers, Int64.
        flows: Numbers of arrows, Int64.
        texts: The bodies, what stands before each of the numbers, and what each packet begins with.

    Raises:
        Refused: If there is not enough memory, or the columns are anything else.
    """
    columns = [*events.select("at", "track", "body"), *numbers, *flows]
    if any(column.dtype != pl.Int64 for column in columns):
        raise Refused
    native, length = loaded(), ctypes.c_int64()
    given = GivenColumns(*columns)
    ends = [(ctypes.c_int64 * max(len(each), 1))(*accumulate(map(len, each))) for each in texts]
    starts = (ctypes.c_char_p * len(texts))(*(b"".join(each) for each in texts))
    places = pointers([ctypes.addressof(each) for each in ends])
    found = native.ss_packets(
        pointers(given.pointers),
        events.height,
        numbers.width,
        flows.width,
        starts,
        places,
        len(texts[0]),
        ctypes.byref(length),
    )
    if not found:
        raise Refused
    try:
        return ctypes.string_at(found, length.value)
    finally:
        native.ss_free_bytes(found)
