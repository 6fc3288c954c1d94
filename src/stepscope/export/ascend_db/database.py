"""A SQLite file in the making: rows in batches, texts as numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.export.ascend_db.schema import OPTIONAL
from stepscope.tables.base import nulls

LONGEST_TEXT_BYTES = 1 << 20
"""Longer texts are cut: readers refuse cells of some MB."""
_KEPT_CHARACTERS = 100
"""Longer texts are remembered by their hash, so that memory does not grow with their length."""


class Database:
    """An open database. Use `new_database` to make one.

    Args:
        connection: Open, with the tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str | bytes, int] = {}
        self._statements: dict[tuple[str, ...], str] = {}
        self._made: set[str] = set()
        self.cut = 0
        """Number of texts that were cut."""
        self.replaced = 0
        """Number of texts with a NUL, at which many readers end a text."""

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """Add rows; columns are named as those of the table, missing ones are null."""
        if rows.height:
            self.add_rows(table, rows.columns, rows.iter_rows())

    def add_rows(self, table: str, columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of these columns."""
        if table in OPTIONAL:
            self.create(table, OPTIONAL[table])
        key = (table, *columns)
        if key not in self._statements:
            marks = ", ".join("?" * (len(key) - 1))
            names = ", ".join(f'"{name}"' for name in key[1:])
            self._statements[key] = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'
        self._connection.executemany(self._statements[key], rows)

    def create(self, table: str, columns: str) -> None:
        """Create a table if it is not there."""
        if table not in self._made:
            self._connection.execute(f'CREATE TABLE IF NOT EXISTS "{table}" ({columns})')
            self._made.add(table)

    def execute(self, statement: str) -> None:
        """Run one of our own statements."""
        self._connection.execute(statement)

    def numbered(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Rows with the numbers of texts for the texts in some columns; null stays null."""
        return rows.with_columns(self.numbers(rows[column]) for column in columns)

    def numbers(self, texts: pl.Series) -> pl.Series:
        """The numbers of texts."""
        distinct = texts.drop_nulls().unique(maintain_order=True).to_list()
        if not distinct:
            return nulls(texts.name, pl.Int64, len(texts))
        known = [self.number(text) for text in distinct]
        numbers: pl.Series = texts.replace_strict(distinct, known, default=None, return_dtype=pl.Int64)
        return numbers

    def number(self, text: str) -> int:
        """The number of a text, which is added if it is new."""
        key = text if len(text) <= _KEPT_CHARACTERS else blake2b(text.encode(), digest_size=16).digest()
        if (number := self._numbers.get(key)) is None:
            number = self._numbers[key] = len(self._numbers)
            self._connection.execute("INSERT INTO STRING_IDS VALUES (?, ?)", (number, self._cleaned(text)))
        return number

    def _cleaned(self, text: str) -> str:
        """A text that all readers take: without NUL, at which those in C end, and not too long."""
        if "\0" in text:
            self.replaced += 1
            text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        data = text.encode()
        if len(data) <= LONGEST_TEXT_BYTES:
            return text
        self.cut += 1
        return data[:LONGEST_TEXT_BYTES].decode(errors="ignore")


@contextmanager
def new_database(path: Path, tables: Mapping[str, str], indexes: Iterable[str] = ()) -> Iterator[Database]:
    """Make a SQLite file, readable by this user alone.

    Args:
        path: The file, which must not exist.
        tables: Its tables, and the columns of each.
        indexes: Statements that create its indexes, once all rows are there.

    Raises:
        OSError: If it cannot be written.
    """
    path.touch(mode=0o600, exist_ok=False)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # The file is moved to its place when it is whole; until then a crash may lose it.
        for setting in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE"):
            connection.execute(f"PRAGMA {setting}").fetchall()
        connection.execute("BEGIN")
        for table, columns in tables.items():
            connection.execute(f'CREATE TABLE "{table}" ({columns})')
        yield Database(connection)
        for statement in indexes:
            connection.execute(statement)
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:  # a full disk, a file that is too large
        raise OSError(f"{path.name}: {error}") from error
    finally:
        connection.close()
