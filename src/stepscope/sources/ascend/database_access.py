"""An untrusted SQLite file: opened read-only, with bounded queries.

A file may be made to do harm: views that never end, pages that point at each other so that a table has no end, a cell
of hundreds of megabytes. Its own size bounds what an honest table can hold; what goes beyond is an error of its table.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import polars as pl

from stepscope.sources.native.sqlite import StoredTable, read_stored

MAX_CELL_BYTES = 4 << 20
"""Largest cell, and row, that is read. Texts of profilers are names, shapes and stacks; the largest known is a list of
all groups of a job, some 100 KB for a thousand ranks."""
MIN_ROW_BYTES = 4
"""Fewest bytes that a row takes in a file: its pointer, its length and its number."""
TEXT_RATIO = 8
"""Most bytes of text that one question may give for each byte of the file: numbers joined into texts are longer than as
they are stored."""
SLACK = 1 << 20
"""Rows and bytes that any file may give, however small it is."""
SILENCE_S = 60.0
"""Longest time in which a question gives no row; of an honest table rows come all the time."""
_ROWS_AT_ONCE = 32
"""Rows that are fetched before their size is known: times the largest row, they fit into memory."""
_LIMIT_LENGTH, _LIMIT_ATTACHED = 0, 7
"""Numbers of limits in SQLite's own interface, which Python has names for from 3.11 on."""
_OPERATIONS = 100_000
"""Steps of SQLite's machine between two looks at the clock."""


class Access:
    """A connection that gives rows in pieces, and no more of them than the file can hold.

    Args:
        connection: Open, for reading alone.
        file: Descriptor of the same file.
    """

    def __init__(self, connection: sqlite3.Connection, file: int) -> None:
        file_bytes = os.fstat(file).st_size
        self._connection = connection
        self._file = file
        self._most_rows = file_bytes // MIN_ROW_BYTES + SLACK
        self._most_bytes = TEXT_RATIO * file_bytes + SLACK + MAX_CELL_BYTES
        self.given_bytes = 0
        """Bytes of texts and blobs of all rows so far."""
        self._since = 0.0
        self._stop: BaseException | None = None
        self._clock = time.monotonic
        connection.text_factory = self._text
        connection.set_progress_handler(self._look, _OPERATIONS)

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query, a few at a time.

        Raises:
            sqlite3.Error: If it cannot be answered, or not within its bounds.
        """
        count, before = 0, self.given_bytes
        with self._watched():
            cursor = self._connection.execute(query, values)
        while True:
            with self._watched():
                found = cursor.fetchmany(_ROWS_AT_ONCE)
            if not found:
                return
            count += len(found)
            if bytes in {*map(type, chain.from_iterable(found))}:
                self.given_bytes += sum(len(cell) for row in found for cell in row if isinstance(cell, bytes))
            if count > self._most_rows:
                raise sqlite3.DataError(f"more rows than a file of this size can hold ({self._most_rows})")
            if self.given_bytes - before > self._most_bytes:
                raise sqlite3.DataError(f"more text than a file of this size can hold ({self._most_bytes} bytes)")
            yield found

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query that gives few."""
        return [row for rows in self.rows(query, values) for row in rows]

    def stored(
        self, table: StoredTable, columns: Mapping[str, type[pl.DataType]], most_rows: int, most_bytes: int
    ) -> Iterator[pl.DataFrame]:
        """Columns of a table without SQLite; see `read_stored`."""
        return read_stored(self._file, table, columns, most_rows, most_bytes)

    def _text(self, data: bytes) -> str:
        self.given_bytes += len(data)
        return data.decode("utf-8", "replace")

    def _look(self) -> bool:
        """Whether to give up. An exception in here would be lost, so it waits until SQLite has returned."""
        try:
            return self._clock() - self._since > SILENCE_S
        except BaseException as error:
            self._stop = error
            return True

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Bound the time until the next row, and let Ctrl-C through."""
        self._since = time.monotonic()
        try:
            yield
        except sqlite3.Error as error:
            if self._stop is not None:
                raise self._stop from None
            if time.monotonic() - self._since > SILENCE_S:
                raise sqlite3.OperationalError(f"no row for {SILENCE_S:.0f} s") from error
            if "too big" in str(error):
                size = f"{MAX_CELL_BYTES >> 20} MiB"
                raise sqlite3.DataError(f"a cell is larger than {size} and is not read") from error
            raise


@contextmanager
def open_access(path: Path) -> Iterator[Access]:
    """Open a SQLite file read-only and immutable, so that no journal is made or looked for next to it.

    Its schema is not trusted: no functions with effects, no extensions, no cells beyond `MAX_CELL_BYTES`.

    Raises:
        sqlite3.Error: If it cannot be opened.
        OSError: If it is not there.
    """
    address = f"file:{quote_from_bytes(os.fsencode(path.absolute()))}?mode=ro&immutable=1"
    with ExitStack() as held:
        connection = sqlite3.connect(address, uri=True)
        held.callback(connection.close)
        file = os.open(path, os.O_RDONLY)
        held.callback(os.close, file)
        if hasattr(connection, "enable_load_extension"):
            connection.enable_load_extension(False)
        if hasattr(connection, "setlimit"):  # from Python 3.11 on; before, `bounded` does alone
            connection.setlimit(_LIMIT_LENGTH, MAX_CELL_BYTES)
            connection.setlimit(_LIMIT_ATTACHED, 0)
        for setting in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {setting}")
        yield Access(connection, file)


def bounded(column: str) -> str:
    """A column with null for oversized cells, for versions of SQLite without a limit of their own."""
    if hasattr(sqlite3.Connection, "setlimit"):
        return column
    return f"CASE WHEN length({column}) <= {MAX_CELL_BYTES} THEN {column} END"
