"""Frames packed into little room, to be read again soon: a third of what Polars needs, at the cost of a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.sources.native.library import GivenFrame, NewColumn, Refused, loaded

_FORMATS: dict[type[pl.DataType], str] = {pl.Int64: "l", pl.Int32: "i", pl.Float64: "g", pl.String: "v"}


@dataclass(frozen=True)
class Packed:
    """A frame with rows.

    Args:
        rows: How many.
        blocks: Where the block of each column begins in `data`.
        data: The blocks.
    """

    rows: int
    blocks: Mapping[str, int]
    data: bytes


def pack(frame: pl.DataFrame) -> Packed:
    """Pack a frame.

    Raises:
        Refused: If it has no rows, a column of another type than numbers and texts, or very long texts.
    """
    if any(dtype not in _FORMATS for dtype in frame.dtypes) or not frame.width:
        raise Refused
    native, ends, given = loaded(), (ctypes.c_int64 * frame.width)(), GivenFrame(frame)
    found = native.ss_pack(given.pointer, frame.height, frame.width, ctypes.addressof(ends))
    if not found:
        raise Refused
    try:
        data = ctypes.string_at(found, ends[-1])
    finally:
        native.ss_free_bytes(found)
    return Packed(frame.height, dict(zip(frame.columns, [0, *ends], strict=False)), data)


def unpack(packs: Sequence[Packed], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Packed frames below each other; a column that some of them lack is null there.

    Args:
        packs: At least one.
        schema: The wanted columns, at least one, with the types that they had.

    Raises:
        MemoryError: If there is not enough memory.
    """
    starts = [ctypes.cast(ctypes.c_char_p(pack.data), ctypes.c_void_p).value or 0 for pack in packs]
    blocks = [
        None if (place := pack.blocks.get(name)) is None else start + place
        for name in schema
        for pack, start in zip(packs, starts, strict=True)
    ]
    rows = (ctypes.c_int64 * len(packs))(*(pack.rows for pack in packs))
    formats = "".join(_FORMATS[dtype.base_type()] for dtype in schema.values()).encode()
    made = NewColumn()
    given = (ctypes.c_void_p * len(blocks))(*blocks), rows, len(packs), len(schema), formats
    if loaded().ss_unpack(*given, *made.pointers) < 0:
        raise MemoryError
    return made.frame(list(schema))
