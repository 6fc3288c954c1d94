"""Tables of SQLite files, read by the compiled decoder and by SQLite: the same cells, also where files are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources.ascend import database_access
from stepscope.sources.ascend.database import DATABASE_ERRORS, Database, open_database
from stepscope.sources.ascend.database_access import MAX_CELL_BYTES
from stepscope.sources.native.library import Refused, is_available
from stepscope.store.sinks import MemorySink

pytestmark = pytest.mark.skipif(not is_available(), reason="no compiled decoder here")

COLUMNS = {"a": pl.Int64, "b": pl.Float64, "c": pl.String}
WHOLE = st.integers(-(2**63), 2**63 - 1)
PLAIN_CELLS = st.tuples(
    st.none() | WHOLE | st.integers(-300, 300) | st.integers(0, 2**63 - 1).map(str),
    st.none() | st.integers(-(2**47), 2**47) | st.floats(allow_nan=False),
    st.none() | st.text(max_size=30) | st.just("long " * 900),
)
ANY_CELL = st.none() | WHOLE | st.floats() | st.text(max_size=9) | st.binary(max_size=9) | st.just("١٢") | st.just("-7")
DECLARED = ["a, b, c", "a INTEGER, b NUMERIC, c TEXT", "a INTEGER PRIMARY KEY, b REAL, c BLOB", "a TEXT, b, c UNIQUE"]


def make(path: Path, rows: list[tuple[Any, ...]], declared: str = DECLARED[1], page_bytes: int = 512) -> Path:
    """A database with a table `t`: the rows that it takes, in part deleted and written again."""
    insert = "INSERT OR IGNORE INTO t VALUES (?, ?, ?)"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size={page_bytes}")
        connection.execute(f"CREATE TABLE t ({declared})")
        for row in rows:
            with suppress(sqlite3.IntegrityError):  # a key that is no number
                connection.execute(insert, row)
        connection.execute("DELETE FROM t WHERE rowid % 7 = 3")
        connection.executemany(insert, [(None, *row[1:]) for row in rows[:5]])
        connection.execute("CREATE INDEX i ON t(a)")
        connection.commit()
    return path


@contextmanager
def opened(path: Path) -> Iterator[tuple[Database, MemorySink]]:
    sink = MemorySink("ascend_db")
    with open_database(path, sink) as database:
        yield database, sink


def read(path: Path) -> tuple[pl.DataFrame | None, list[Any]]:
    """Rows of `t`, and what was reported."""
    try:
        with opened(path) as (database, sink):
            rows = database.read("t", {name: name for name in COLUMNS}, COLUMNS)
            filled = database.read("t", {"a": "a", "b": "b"}, {"b": pl.Float64}, filled="a")
    except DATABASE_ERRORS as error:
        return None, [str(error)]
    issues = sink.close().get("issues", pl.DataFrame())
    return pl.concat([rows, filled], how="diagonal"), issues.rows()


def refusing(*_: object) -> Iterator[pl.DataFrame]:
    raise Refused


def read_by_sqlite(path: Path) -> tuple[pl.DataFrame | None, list[Any]]:
    with patch.object(database_access, "read_stored", refusing):
        return read(path)


def assert_same(path: Path) -> pl.DataFrame | None:
    """The rows, which are the same either way."""
    (rows, issues), (expected, reported) = read(path), read_by_sqlite(path)
    assert issues == reported
    assert (rows is None) == (expected is None)
    if rows is not None and expected is not None:
        assert rows.equals(expected), (rows, expected)
    return rows


def is_refused(path: Path) -> bool:
    """Whether the compiled decoder leaves any of the table to SQLite."""
    with patch.object(Database, "_checked_batches", side_effect=AssertionError), opened(path) as (database, _):
        try:
            database.read("t", {name: name for name in COLUMNS}, COLUMNS)
        except AssertionError:
            return True
    return False


@settings(deadline=None)
@given(rows=st.lists(PLAIN_CELLS, max_size=60), declared=st.sampled_from(DECLARED[:2]))
def test_plain_tables_are_read_by_the_compiled_decoder(rows: list[tuple[Any, ...]], declared: str) -> None:
    with TemporaryDirectory() as directory:
        path = make(Path(directory) / "any.db", rows, declared)

        assert not is_refused(path)
        assert_same(path)


@settings(deadline=None)
@given(
    rows=st.lists(PLAIN_CELLS, max_size=100),
    odd=st.lists(st.tuples(ANY_CELL, ANY_CELL, ANY_CELL), max_size=2),
    declared=st.sampled_from(DECLARED),
    page_bytes=st.sampled_from([512, 4096, 65536]),
)
def test_cells_of_any_kind_are_those_of_sqlite(
    rows: list[tuple[Any, ...]], odd: list[tuple[Any, ...]], declared: str, page_bytes: int
) -> None:
    with TemporaryDirectory() as directory:
        assert_same(make(Path(directory) / "any.db", rows + odd, declared, page_bytes))


def test_damage_right_behind_the_rows_that_python_gets_at_a_time_is_that_of_sqlite(tmp_path: Path) -> None:
    path = make(tmp_path / "any.db", [(n, n / 7, f"text {n} " * (80 if n % 50 == 9 else 1)) for n in range(270)])
    content = bytearray(path.read_bytes())
    content[520] = 1
    path.write_bytes(content)

    rows = assert_same(path)

    assert rows is not None and 0 < rows.height < 2 * 270


@settings(deadline=None, max_examples=200)
@given(data=st.data(), lines=st.integers(1, 400))
def test_damaged_files_are_read_as_far_as_sqlite_reads_them(data: st.DataObject, lines: int) -> None:
    with TemporaryDirectory() as directory:
        rows = [(n, n / 7, f"text {n} " * (80 if n % 50 == 9 else 1)) for n in range(lines)]
        path = make(Path(directory) / "any.db", rows)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.integers(0, len(content) - 1))
            # headers of pages, where damage does most
            place -= data.draw(st.sampled_from([0, place % 512 - place % 24 if place % 512 >= 24 else 0]))
            content[place % len(content)] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            del content[data.draw(st.integers(100, len(content))) :]
        path.write_bytes(content)

        assert_same(path)


def table_file(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "any.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


NUMBERS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100) "
UNUSUAL = {
    "a table without rowids": (
        "CREATE TABLE t (a PRIMARY KEY, b, c) WITHOUT ROWID",
        "INSERT INTO t VALUES (5, 2, 'x')",
    ),
    "a descending key": ("CREATE TABLE t (a INTEGER PRIMARY KEY DESC, b, c)", "INSERT INTO t VALUES (NULL, 2, 'x')"),
    "columns that are calculated": (
        "CREATE TABLE t (x, a AS (x * 2), b AS (x / 2.0) STORED, c)",
        "INSERT INTO t VALUES (3, 'x')",
    ),
    "a column added later": (
        "CREATE TABLE t (a, b)",
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t ADD COLUMN c DEFAULT 'later'",
    ),
    "texts of two bytes a letter": (
        "PRAGMA encoding='UTF-16le'",
        "CREATE TABLE t (a, b, c)",
        "INSERT INTO t VALUES (1, 2, 'x')",
    ),
    "texts that are not UTF-8": ("CREATE TABLE t (a, b, c)", "INSERT INTO t VALUES (1, 2, CAST(x'41ff42' AS TEXT))"),
    "cells that are too large": (
        "CREATE TABLE t (a, b, c)",
        "INSERT INTO t VALUES (1, 2, 'x')",
        f"INSERT INTO t VALUES (1, 2, CAST(zeroblob({MAX_CELL_BYTES + 1}) AS TEXT))",
    ),
    "numbers beyond int64": ("CREATE TABLE t (a, b, c)", "INSERT INTO t VALUES (1e19, '9223372036854775808', 'x')"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_unusual_is_left_to_sqlite(tmp_path: Path, name: str) -> None:
    path = table_file(tmp_path, *UNUSUAL[name])

    assert is_refused(path)
    assert_same(path)


def test_a_key_that_is_the_number_of_the_row_is_read(tmp_path: Path) -> None:
    path = table_file(
        tmp_path,
        "CREATE TABLE t (b, a INTEGER PRIMARY KEY, c)",
        f"INSERT INTO t {NUMBERS} SELECT 0.5, n * n - 500, 'x' FROM n",
    )

    assert not is_refused(path)
    rows = assert_same(path)
    assert rows is not None
    assert rows["a"].to_list()[:100] == [n * n - 500 for n in range(1, 101)]


def test_a_row_after_many_plain_ones_is_left_to_sqlite_with_what_follows(tmp_path: Path) -> None:
    path = table_file(
        tmp_path,
        "CREATE TABLE t (a, b, c)",
        f"INSERT INTO t {NUMBERS} SELECT n, n, n || '' FROM n",
        "INSERT INTO t VALUES (x'31', x'32', 7)",
        f"INSERT INTO t {NUMBERS} SELECT -n, n, n || '' FROM n",
    )

    rows = assert_same(path)

    assert rows is not None
    assert rows["a"].to_list()[:201] == [*range(1, 101), None, *range(-1, -101, -1)]
    assert rows["c"].to_list()[100] == "7"


@pytest.mark.parametrize("mode", ["wal", "persist"])
def test_what_lies_beside_a_file_is_left_alone(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "any.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany("INSERT INTO t VALUES (?, 1, 'x')", [(n,) for n in range(100)])
        connection.commit()
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        assert len(before) > 1

        assert_same(path)

        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
