"""Columns of a table in a SQLite file, without an object of Python for every cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.sources.native.library import NewColumn, Refused, int32s, loaded

_KINDS: dict[type[pl.DataType], int] = {pl.Int64: 0, pl.Float64: 1, pl.String: 2}


@dataclass(frozen=True)
class StoredTable:
    """Where a table stands in its file.

    Args:
        root: Number of its first page.
        key: Place of the column that stands for the number of a row; -1 if none does.
        places: Name of a column to its place in a row.
    """

    root: int
    key: int = -1
    places: Mapping[str, int] = field(default_factory=dict)


def read_stored(
    file: int, table: StoredTable, columns: Mapping[str, type[pl.DataType]], most_rows: int, most_bytes: int
) -> Iterator[pl.DataFrame]:
    """Columns of a table by their names, a batch of rows at a time, in the order of row numbers.

    Args:
        file: Descriptor of the open file.
        table: The table.
        columns: The columns, as int64, float64 or texts. Numbers are converted as Polars does it; texts of digits are
            numbers.
        most_rows: Rows of a batch.
        most_bytes: About how much text makes a batch.

    Raises:
        Refused: If the rest of the table is for SQLite: it is damaged, or has cells of another kind. The rows given
            until then are the first ones that SQLite gives, a multiple of 32.
    """
    native, names = loaded(), list(columns)
    places = int32s([table.places[name] for name in columns])
    kinds = int32s([_KINDS[kind] for kind in columns.values()])
    scan = native.ss_db_open(file, table.root, table.key, places, kinds, len(columns))
    if not scan:
        raise Refused
    try:
        while rows := native.ss_db_rows(scan, most_rows, most_bytes):
            if rows < 0:
                raise Refused
            made = NewColumn()
            if native.ss_db_columns(scan, *made.pointers) < 0:
                raise MemoryError
            yield made.frame(names)
    finally:
        native.ss_db_close(scan)
