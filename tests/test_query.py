"""Queries read the tables of a run and nothing else."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kineto_job import RankTrace
from stepscope.errors import StepscopeError
from stepscope.run import Run, open_run
from stepscope.tables import KERNELS as KERNELS_TABLE
from stepscope.tables import STEPS, TABLES

STEPS_OF_RANK = STEPS.frame(
    step=[1, 2], start_ns=[0, 10], end_ns=[10, 30], window_start_ns=[0, 10], window_end_ns=[10, 30], window=["host"] * 2
)
RUN = Run.from_frames({0: {"steps": STEPS_OF_RANK}})


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT step FROM steps", [(1,), (2,)]),
        ("select max(end_ns) from steps -- read_csv('x')", [(30,)]),
        ("SELECT step /* read_csv('x') */ FROM steps LIMIT 1", [(1,)]),
        ("(SELECT step FROM steps) UNION ALL (SELECT step FROM steps)", [(1,), (1,), (2,), (2,)]),
        ("WITH a AS (SELECT step FROM steps), b AS (SELECT step FROM a) SELECT * FROM b", [(1,), (2,)]),
        ("SELECT 'read_csv(''x'')' AS text FROM steps LIMIT 1", [("read_csv('x')",)]),
        ("SELECT step FROM steps WHERE step IN (SELECT MAX(step) FROM steps)", [(2,)]),
        ("SELECT CASE WHEN (step = 1) THEN (5) ELSE (6) END AS c FROM steps", [(5,), (6,)]),
        ("SELECT CAST(step AS DOUBLE) / COUNT(*) OVER () AS c FROM steps", [(0.5,), (1.0,)]),
        ("SELECT a.step FROM steps AS a JOIN steps AS b ON (a.step = b.step) ORDER BY a.step", [(1,), (2,)]),
        ("SELECT name FROM kernels", []),
    ],
)
def test_tables_of_the_run_are_answered(query: str, rows: list[tuple[object, ...]]) -> None:
    assert sorted(RUN.query(query).rows()) == rows


KERNELS = KERNELS_TABLE.frame(
    kernel=list(range(300)),
    start_ns=list(range(300)),
    duration_ns=[5] * 300,
    name=[f"k{number * 7 % 100}" for number in range(300)],
    kind=["MatMul", "Add", "Mul"] * 100,
)
GROUPS = sorted((f"k{number}", 3) for number in range(100))


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT name, COUNT(*) AS n FROM kernels GROUP BY name", GROUPS),
        ("SELECT name, COUNT(*) AS n FROM kernels GROUP BY name ORDER BY n DESC;", GROUPS),
        ("SELECT name, COUNT(*) AS n FROM kernels GROUP BY name ORDER BY n LIMIT 4 OFFSET 1", GROUPS[1:5]),
        ("SELECT name, COUNT(*) AS n FROM kernels GROUP BY name HAVING n > 2 LIMIT 4", GROUPS[:4]),
        ("SELECT DISTINCT name FROM kernels", [(name,) for name, _ in GROUPS]),
        ("SELECT name FROM kernels UNION SELECT name FROM kernels", [(name,) for name, _ in GROUPS]),
        ("SELECT kind, start_ns FROM kernels ORDER BY kind DESC LIMIT 3", [("Mul", 2), ("Mul", 5), ("Mul", 8)]),
        ("SELECT start_ns FROM kernels LIMIT 3", [(0,), (1,), (2,)]),
        ("SELECT kind, ARRAY_AGG(step) AS s FROM kernels WHERE start_ns < 1 GROUP BY kind", [("MatMul", [None])]),
        ("SELECT name FROM kernels ORDER BY ALL LIMIT 1", [("k0",)]),
    ],
)
def test_rows_come_in_one_order(query: str, rows: list[tuple[object, ...]]) -> None:
    """Polars itself gives groups, and rows of equal keys, in any order."""
    assert Run.from_frames({0: {"kernels": KERNELS}}).query(query).rows() == rows


def test_all_tables_are_there() -> None:
    assert set(RUN.query("SHOW TABLES")["name"]) == set(TABLES)


CALLS = [
    "SELECT * FROM {f}('{file}')",
    "SELECT * FROM {f} ( '{file}' )",
    "SELECT * FROM \"{f}\"('{file}')",
    "SELECT * FROM {f}/* */('{file}')",
    "SELECT * FROM {f} -- \n ('{file}')",
    "SELECT * FROM steps, {f}('{file}')",
    "SELECT * FROM steps JOIN {f}('{file}') AS r ON steps.step = r.a",
    "SELECT (SELECT a FROM {f}('{file}')) AS a FROM steps",
    "SELECT * FROM steps WHERE step IN (SELECT a FROM {f}('{file}'))",
    "SELECT step FROM steps WHERE EXISTS (SELECT a FROM {f}('{file}'))",
    "WITH q AS (SELECT * FROM {f}('{file}')) SELECT * FROM q",
    "SELECT step FROM steps UNION SELECT a FROM {f}('{file}')",
    "SELECT * FROM (({f}('{file}')))",
    "SELECT * FROM {f}('{file}') AS t(a, b)",
    "SELECT step FROM steps ORDER BY (SELECT a FROM {f}('{file}'))",
]


@pytest.mark.parametrize("name", ["read_csv", "READ_CSV", "Read_Csv"])
@pytest.mark.parametrize("call", CALLS)
def test_no_file_is_opened(tmp_path: Path, call: str, name: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")

    with pytest.raises(StepscopeError, match="is not a function that a query may call"):
        RUN.query(call.format(f=name, file=secret))


@pytest.mark.parametrize("name", ["read_parquet", "read_ipc", "read_json", "read_delta", "scan_csv", "made_up"])
def test_nor_by_any_other_function(tmp_path: Path, name: str) -> None:
    with pytest.raises(StepscopeError, match=rf"{name}\(\.\.\.\) is not a function"):
        RUN.query(f"SELECT * FROM {name}('{tmp_path / 'there-is-no-such-file'}')")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM secret",
        "SELECT * FROM '{file}'",
        'SELECT * FROM "{file}"',
        "SELECT * FROM `{file}`",
        "SELECT 1 /* /* */ */; SELECT 2",
        "SELECT E'\\'' , * FROM read_csv('{file}') WHERE '' = '' -- '",
        "SELECT $$read_csv$$ FROM steps",
        "SELECT step FROM steps WHERE 'unclosed",
        "SELECT 1; SELECT 2",
        "DROP TABLE steps",
        "CREATE TABLE a AS SELECT * FROM read_csv('{file}')",
        "INSERT INTO steps SELECT * FROM steps",
        "DELETE FROM steps",
        "TRUNCATE TABLE steps",
        "EXPLAIN SELECT * FROM steps",
        "FROM read_csv('{file}')",
        "((((",
        "",
        "\0",
    ],
)
def test_anything_else_is_an_error_that_says_so(tmp_path: Path, query: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")

    with pytest.raises(StepscopeError, match=r"Tables: |Columns: |Try|are supported$"):
        RUN.query(query.format(file=secret))


def test_a_table_that_there_is_not_is_answered_by_one_with_a_like_name() -> None:
    with pytest.raises(StepscopeError, match=r"Did you mean steps\? Tables: ranks"):
        RUN.query("SELECT * FROM stepz")


def test_every_function_that_may_be_called_opens_no_file() -> None:
    """Polars' functions in the place of a table are named after what they read; none of these is among ours."""
    from stepscope.run.query import _FUNCTIONS

    context = pl.SQLContext({"steps": RUN.table("steps")})
    for name in sorted(set(_FUNCTIONS.split()) - {"unnest"}):
        with pytest.raises(
            (pl.exceptions.PolarsError, BaseException), match=r"not a supported table function|parser|expected"
        ):
            context.execute(f"SELECT * FROM {name}('x')", eager=True)


def test_a_table_that_a_join_only_repeats_keeps_its_rows(tmp_path: Path) -> None:
    for rank in range(2):
        RankTrace(rank, 2).step(0, 0, 90).kernel("gemm", 20, 30).kernel("gemm", 60, 20).write(tmp_path)
    query = "SELECT COUNT(*) AS n, SUM(a.duration_ns) AS s FROM kernels a CROSS JOIN kernels b CROSS JOIN kernels c"
    assert open_run(tmp_path).query(query).rows() == [(64, 16 * 2 * 50_000)]
