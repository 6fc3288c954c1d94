"""Databases that were made to do harm: each is refused by name, in bounded time and memory, at no cost to others."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ascend_files import make_database, rank_directory, sql, write_database

from stepscope import open_run
from stepscope.sources.ascend import database_access
from stepscope.sources.ascend.database_access import MAX_CELL_BYTES, open_access

LIMIT_S = 20.0
"""Time for an answer, on a machine with other work to do."""


COUNT = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
"""Never ends."""
GONE = "DROP TABLE TASK"
HOSTILE = {
    "view": ("ALTER TABLE TASK RENAME TO other", "CREATE VIEW TASK AS SELECT * FROM other"),
    "endless_view": (
        GONE,
        f"CREATE VIEW TASK AS {COUNT} SELECT n AS startNs, n AS endNs, n AS globalTaskId FROM c",
    ),
    "virtual_table": (GONE, "CREATE VIRTUAL TABLE TASK USING fts5(startNs, endNs, globalTaskId, taskType)"),
    "large_cell": ("UPDATE TASK SET startNs = zeroblob(400000000) WHERE rowid = (SELECT max(rowid) FROM TASK)",),
    "large_text": ("UPDATE TASK SET taskType = CAST(zeroblob(60000000) AS TEXT)",),
    "extension_call": (GONE, "CREATE VIEW TASK AS SELECT load_extension('/tmp/any.so') AS startNs, 1 AS endNs"),
    "file_call": (GONE, "CREATE VIEW TASK AS SELECT writefile('/tmp/any', 'x') AS startNs, 1 AS endNs"),
}
FAR_APART = [
    f"UPDATE {table} SET rowid = {rowid} WHERE rowid = {which}"
    for table in ("TASK", "TASK_PMU_INFO")
    for rowid, which in ((-(2**63), 1), (2**63 - 1, f"(SELECT max(rowid) FROM {table})"))
]
"""Rowids at both ends of their range."""


@contextmanager
def in_time() -> Iterator[None]:
    """Fail if the body takes too long."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < LIMIT_S


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A database without tables."""
    path = tmp_path / "any.db"
    path.touch()
    return path


def job(directory: Path, hostile: Iterable[str], ranks: int) -> Path:
    """The output folder of rank 0, whose database is hostile; further ranks are sound."""
    outputs = []
    for rank in range(ranks):
        outputs.append(rank_directory(directory, f"host_a_{rank}_20251009163000000_ascend_pt", rank))
        write_database(outputs[-1])
    (path,) = outputs[0].glob("ascend_pytorch_profiler*.db")
    sql(path, *hostile)
    return outputs[0]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused_by_name_and_the_other_rank_is_answered(
    tmp_path: Path, name: str, ranks: int
) -> None:
    output = job(tmp_path, HOSTILE[name], ranks)
    before = sorted(path.name for path in output.iterdir())

    with in_time():
        run = open_run(tmp_path, use_store=False)

    assert all(unread.trace is None for unread in run.unread)
    errors = run.issues.filter(severity="error")
    problems = [problem for problem in errors["problem"] if "TASK" in problem]
    assert problems, errors
    assert any(word in problems[0] for word in ("is a view", "is a virtual table", "a cell is larger than 4 MiB"))
    assert sorted(path.name for path in output.iterdir()) == before
    if ranks == 2:
        assert 1 in run.table("kernels").collect()["rank"].to_list()


def test_rowids_at_both_ends_of_their_range_are_read_at_once(tmp_path: Path) -> None:
    write_database(rank_directory(tmp_path / "sound"))
    job(tmp_path / "far", FAR_APART, 1)

    with in_time():
        runs = [open_run(tmp_path / name, use_store=False) for name in ("sound", "far")]
        counters = [run.table("kernel_counters").collect() for run in runs]

    assert counters[0].equals(counters[1])


def test_a_table_whose_pages_come_again_and_again_ends_where_the_file_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_database(tmp_path / "any.db", {"numbers": ("number", [(1,)] * 1000)})
    monkeypatch.setattr(database_access, "SLACK", 0)

    with open_access(path) as access:
        assert len(access.all("SELECT number FROM numbers")) == 1000
        with pytest.raises(sqlite3.Error, match="more rows than a file of this size can hold"):
            access.all(f"{COUNT} SELECT n FROM c")
        blob = f"zeroblob({MAX_CELL_BYTES // 2})"
        for cell in (f"CAST({blob} AS TEXT)", blob):
            with pytest.raises(sqlite3.Error, match="more text than a file of this size can hold"):
                access.all(f"SELECT {cell} FROM numbers")


def test_a_question_without_rows_is_given_up(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_access, "SILENCE_S", 0.2)

    with in_time(), open_access(empty) as access, pytest.raises(sqlite3.Error, match="no row for"):
        access.all(f"{COUNT} SELECT max(n) FROM c")


def test_ctrl_c_ends_a_question(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> float:
        raise KeyboardInterrupt

    with open_access(empty) as access, pytest.raises(KeyboardInterrupt):
        access.all("SELECT 1")
        monkeypatch.setattr(access, "_clock", interrupt)
        access.all(f"{COUNT} SELECT max(n) FROM c")


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE t (a)", "ATTACH 'other.db' AS other", "SELECT load_extension('x')"]
)
def test_nothing_can_be_written_attached_or_loaded(empty: Path, statement: str) -> None:
    with open_access(empty) as access, pytest.raises(sqlite3.Error):
        access.all(statement)

    assert [file.name for file in empty.parent.iterdir()] == ["any.db"]
