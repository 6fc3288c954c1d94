"""Databases that were made to do harm: each is refused by name, in bounded time and memory, at no cost to others."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ascend_files import rank_directory, write_database

from stepscope import open_run
from stepscope.sources.ascend import database_access
from stepscope.sources.ascend.database_access import MAX_CELL_BYTES, open_access

LIMIT_S = 20.0
"""Time for an answer, on a machine with other work to do."""


def view(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE TASK RENAME TO other")
    connection.execute("CREATE VIEW TASK AS SELECT * FROM other")


def endless_view(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE TASK")
    count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
    connection.execute(f"CREATE VIEW TASK AS {count} SELECT n AS startNs, n AS endNs, n AS globalTaskId FROM c")


def virtual_table(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE TASK")
    connection.execute("CREATE VIRTUAL TABLE TASK USING fts5(startNs, endNs, globalTaskId, taskType)")


def large_cell(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE TASK SET startNs = zeroblob(400000000) WHERE rowid = (SELECT max(rowid) FROM TASK)")


def large_text(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE TASK SET taskType = CAST(zeroblob(60000000) AS TEXT)")


def extension_call(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE TASK")
    connection.execute("CREATE VIEW TASK AS SELECT load_extension('/tmp/any.so') AS startNs, 1 AS endNs")


def file_call(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE TASK")
    connection.execute("CREATE VIEW TASK AS SELECT writefile('/tmp/any', 'x') AS startNs, 1 AS endNs")


HOSTILE: dict[str, Callable[[sqlite3.Connection], None]] = {
    function.__name__: function
    for function in (view, endless_view, virtual_table, large_cell, large_text, extension_call, file_call)
}


def job(directory: Path, hostile: Callable[[sqlite3.Connection], None], ranks: int) -> Path:
    """The output folder of rank 0, whose database is hostile; further ranks are sound."""
    outputs = []
    for rank in range(ranks):
        outputs.append(rank_directory(directory, f"host_a_{rank}_20251009163000000_ascend_pt", rank))
        write_database(outputs[-1])
    (path,) = outputs[0].glob("ascend_pytorch_profiler*.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        hostile(connection)
    return outputs[0]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused_by_name_and_the_other_rank_is_answered(
    tmp_path: Path, name: str, ranks: int
) -> None:
    output = job(tmp_path, HOSTILE[name], ranks)
    before = sorted(path.name for path in output.iterdir())
    start = time.monotonic()

    run = open_run(tmp_path, use_store=False)

    assert time.monotonic() - start < LIMIT_S
    assert all(unread.trace is None for unread in run.unread)
    errors = run.issues.filter(severity="error")
    problems = [problem for problem in errors["problem"] if "TASK" in problem]
    assert problems, errors
    assert any(word in problems[0] for word in ("is a view", "is a virtual table", "a cell is larger than 4 MiB"))
    assert sorted(path.name for path in output.iterdir()) == before
    if ranks == 2:
        sound = run.table("kernels").collect()
        assert 1 in sound["rank"].to_list()


def test_rowids_at_both_ends_of_their_range_are_read_at_once(tmp_path: Path) -> None:
    def far_apart(connection: sqlite3.Connection) -> None:
        for table in ("TASK", "TASK_PMU_INFO"):
            connection.execute(f"UPDATE {table} SET rowid = -9223372036854775808 WHERE rowid = 1")
            highest = f"(SELECT max(rowid) FROM {table})"
            connection.execute(f"UPDATE {table} SET rowid = 9223372036854775807 WHERE rowid = {highest}")

    write_database(rank_directory(tmp_path / "sound"))
    job(tmp_path / "far", far_apart, 1)
    start = time.monotonic()

    counters = [
        open_run(tmp_path / name, use_store=False).table("kernel_counters").collect() for name in ("sound", "far")
    ]

    assert time.monotonic() - start < LIMIT_S
    assert counters[0].equals(counters[1])


def test_a_table_whose_pages_come_again_and_again_ends_where_the_file_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "any.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE numbers (number)")
        connection.executemany("INSERT INTO numbers VALUES (?)", [(1,)] * 1000)
        connection.commit()
    monkeypatch.setattr(database_access, "SLACK", 0)
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"

    with open_access(path) as access:
        assert len(access.all("SELECT number FROM numbers")) == 1000
        with pytest.raises(sqlite3.Error, match="more rows than a file of this size can hold"):
            access.all(endless)
        with pytest.raises(sqlite3.Error, match="more text than a file of this size can hold"):
            access.all(f"SELECT CAST(zeroblob({MAX_CELL_BYTES // 2}) AS TEXT) FROM numbers")
        with pytest.raises(sqlite3.Error, match="more text than a file of this size can hold"):
            access.all(f"SELECT zeroblob({MAX_CELL_BYTES // 2}) FROM numbers")


def test_a_question_without_rows_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "any.db"
    sqlite3.connect(path).close()
    path.touch()
    monkeypatch.setattr(database_access, "SILENCE_S", 0.2)
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
    start = time.monotonic()

    with open_access(path) as access, pytest.raises(sqlite3.Error, match="no row for"):
        access.all(endless)

    assert time.monotonic() - start < LIMIT_S


def test_ctrl_c_ends_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "any.db"
    path.touch()
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"

    def interrupt() -> float:
        raise KeyboardInterrupt

    with open_access(path) as access, pytest.raises(KeyboardInterrupt):
        access.all("SELECT 1")
        monkeypatch.setattr(access, "_clock", interrupt)
        access.all(endless)


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE t (a)", "ATTACH 'other.db' AS other", "SELECT load_extension('x')"]
)
def test_nothing_can_be_written_attached_or_loaded(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "any.db"
    path.touch()

    with open_access(path) as access, pytest.raises(sqlite3.Error):
        access.all(statement)

    assert [file.name for file in tmp_path.iterdir()] == ["any.db"]
