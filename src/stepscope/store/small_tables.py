"""The small tables of an input, in one file: a Parquet file of each would cost more time than its rows.

A table is a stream of Arrow, one after the other; the manifest says where each begins and how long it is.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from stepscope.store.manifest import SMALL_TABLES, StoredPart
from stepscope.tables.base import with_schema

SMALL_BYTES = 1 << 20
"""A table of that size in memory is read as fast whole as by columns."""

PIECE_ROWS = 1 << 16
"""Rows are read so many at a time if few of them may be wanted."""

_MARK, _AFTER_SIZE = b"\xff" * 4, 8
"""How messages of a stream of Arrow begin; their size follows, 0 at the end."""

Place = tuple[Path, StoredPart, int | None]
"""Where rows of a table are: the directory of an entry, the part, and the number of its rank, if it is asked for."""


def write_small_tables(directory: Path, tables: Mapping[str, pl.DataFrame]) -> dict[str, StoredPart]:
    """Write small tables; returns where they are.

    Raises:
        OSError: If the disk is full.
    """
    parts: dict[str, StoredPart] = {}
    streams: list[bytes] = []
    at = 0
    for name, frame in tables.items():
        stream = io.BytesIO()
        frame.write_ipc_stream(stream, compression="zstd")
        streams.append(stream.getvalue())
        parts[name] = StoredPart(SMALL_TABLES, len(streams[-1]), at)
        at += parts[name].size
    if parts:
        with open(directory / SMALL_TABLES, "xb", opener=_for_owner) as file:
            file.writelines(streams)
    return parts


def scan_small_table(places: Sequence[Place], schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """The rows of one table in several places, in order; those of `schema` that are not stored are null.

    They are read when they are asked for, and then with the wanted columns only.

    Args:
        places: Where they are.
        schema: The columns; `rank` is the number of the place.
    """

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = schema if columns is None else {name: schema[name] for name in columns}
        left = most
        for piece in _pieces(places, most, columns):
            found = _put_together(*piece, wanted)
            if left is not None:
                found = found.head(left)
                left -= found.height
            yield found if predicate is None else found.filter(predicate)
            if left == 0:
                break

    return register_io_source(rows, schema=dict(schema))


def read_small_table(places: Sequence[Place], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The rows of a table in some places, likewise, at once."""
    return _put_together(places, [_stored(directory / part.name, part) for directory, part, _ in places], schema)


def _pieces(
    places: Sequence[Place], most: int | None, columns: Sequence[str] | None
) -> Iterator[tuple[list[Place], list[pl.DataFrame]]]:
    """Some places after the other with their rows, until there are `most` or nobody asks for more."""
    enough = PIECE_ROWS if most is None else min(most, PIECE_ROWS)
    here: list[Place] = []
    frames: list[pl.DataFrame] = []
    height = 0
    for place in places:
        here.append(place)
        frames.append(_stored(place[0] / place[1].name, place[1], columns))
        height += frames[-1].height
        if height >= enough:
            yield here, frames
            here, frames, height = [], [], 0
    if here:
        yield here, frames


def _put_together(
    places: Sequence[Place], frames: Sequence[pl.DataFrame], schema: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """The rows of some places; what is done with all at once costs no more than for one."""
    alike = all(frame.columns == frames[0].columns for frame in frames)
    rows = pl.concat(frames, how="vertical" if alike else "diagonal", rechunk=True)
    if "rank" in schema:
        numbers = pl.DataFrame({"rank": [number for *_, number in places], "rows": [frame.height for frame in frames]})
        ranks = numbers.filter(pl.col("rows") > 0).select(pl.col("rank").cast(pl.Int32).repeat_by("rows").explode())
        rows = rows.insert_column(0, ranks["rank"])
    return with_schema(rows, schema)


def _stored(file: Path, part: StoredPart, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of a table in one place, with those of some columns that are there; at least one."""
    try:
        with file.open("rb", buffering=0) as stream:
            content = os.pread(stream.fileno(), part.size, part.at)
        return pl.read_ipc_stream(io.BytesIO(content), columns=None if columns is None else _chosen(content, columns))
    except pl.exceptions.PolarsError as error:
        raise pl.exceptions.ComputeError(f"{file}: {error}") from error


def _chosen(content: bytes, columns: Sequence[str]) -> list[str] | None:
    """Those of some columns that a stream has, else its first one, which shows how many rows there are; what is not
    asked for is not unpacked. The stream begins with its schema: four bytes of ones, its size, and the schema."""
    size = int.from_bytes(content[len(_MARK) : _AFTER_SIZE], "little")
    there = _columns(content[: _AFTER_SIZE + size])
    return [name for name in there if name in columns] or there[:1] or None


@lru_cache(1 << 8)
def _columns(schema: bytes) -> list[str]:
    """The columns that the first message of a stream names; nearly all ranks have the same ones."""
    return pl.read_ipc_stream(io.BytesIO(schema + _MARK + bytes(_AFTER_SIZE - len(_MARK)))).columns


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)
