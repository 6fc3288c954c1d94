"""Queries over HTTP: tables of the run and nothing else, bounded, with clear problems."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from tests.cli.calling import EXAMPLE, printed
from tests.web.api.api_server import Api, catalogued, checked


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API over a catalogue, whose queries are answered by a process apart."""
    with catalogued(tmp_path_factory.mktemp("cache")) as api:
        yield api


def test_a_query_gives_what_the_command_prints(served: Api, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT rank, step, end_ns - start_ns AS length_ns FROM steps ORDER BY rank, step"
    known = json.loads(printed(capsys, "sql", EXAMPLE, sql, "--no-store", "--json"))
    found = served.query(sql).json()
    assert found["rows"] == known and found["total"] == len(known) and not found["is_cut"]
    assert [column["name"] for column in found["columns"]] == ["rank", "step", "length_ns"]
    assert served.query(sql).headers["cache-control"] == "no-store"


def test_an_answer_is_cut_and_says_so(served: Api) -> None:
    found = served.query("SELECT * FROM slices", limit=3).json()
    assert len(found["rows"]) == 3 and found["is_cut"] and found["total"] > 1_000
    assert len(served.query("SELECT * FROM slices").json()["rows"]) == 1_000


def test_no_number_is_none_of_json(served: Api) -> None:
    sql = "SELECT SQRT(rank - 1.0) AS undefined, LN(rank) AS endless, rank FROM steps LIMIT 1"
    assert served.query(sql).json()["rows"] == [{"undefined": None, "endless": None, "rank": 0}]


def test_an_answer_may_be_a_file(served: Api) -> None:
    address, body = f"/api/v1/runs/{served.first}/query", {"sql": "SELECT name, rank FROM slices", "limit": 1}
    whole = served.client.post(f"{address}?format=csv", json=body)
    assert whole.headers["content-type"].startswith("text/csv") and len(whole.text.splitlines()) > 1_000
    table = served.client.post(address, json=body, headers={"Accept": "application/vnd.apache.parquet"})
    assert pl.read_parquet(io.BytesIO(table.content)).columns == ["name", "rank"]


OUTSIDE = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM read_ipc('/tmp/x')",
    "SELECT * FROM read_json('http://127.0.0.1:1/x')",
    "SELECT * FROM scan_csv('/etc/passwd')",
    "SELECT * FROM \"read_csv\"('/etc/passwd')",
    "SELECT * FROM READ_CSV ('/etc/passwd')",
    "SELECT * FROM read_csv/**/('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM steps WHERE rank IN (SELECT * FROM read_csv('/etc/passwd'))",
    "WITH x AS (SELECT * FROM read_csv('/etc/passwd')) SELECT * FROM x",
    "COPY steps TO '/tmp/x.csv'",
    "ATTACH '/tmp/x.db' AS x",
    "INSTALL httpfs",
    "PRAGMA database_list",
    "CREATE TABLE x AS SELECT * FROM steps",
    "DROP TABLE steps",
    "DELETE FROM steps",
    "INSERT INTO steps VALUES (1)",
    "EXPLAIN SELECT * FROM steps",
    "SELECT 1; SELECT * FROM read_csv('/etc/passwd')",
    "SELECT getenv('HOME')",
    "SELECT * FROM other_run.steps",
    "SELECT * FROM nix",
]


@pytest.mark.parametrize("sql", OUTSIDE)
def test_a_query_reaches_nothing_but_tables_of_the_run(served: Api, sql: str) -> None:
    response = served.query(sql)
    checked(response, 400, "bad-request")
    assert "root:" not in response.text


BODIES: list[tuple[Any, str, int, str, str]] = [
    (b"", "application/json", 400, "bad-request", "body"),
    (b"SELECT 1", "application/json", 400, "bad-request", "body"),
    (b"[]", "application/json", 400, "bad-request", "body"),
    (b"{}", "application/json", 400, "bad-request", "sql"),
    (b'{"sql": 1}', "application/json", 400, "bad-request", "sql"),
    (b'{"sql": ""}', "application/json", 400, "bad-request", "sql"),
    (b'{"sql": "SELECT 1", "limit": 0}', "application/json", 400, "bad-request", "limit"),
    (b'{"sql": "SELECT 1", "limit": 10001}', "application/json", 400, "bad-request", "limit"),
    (b'{"sql": "SELECT 1", "limit": "1"}', "application/json", 400, "bad-request", "limit"),
    (b'{"sql": "SELECT 1", "file": "x"}', "application/json", 400, "bad-request", "file"),
    (b'{"sql": "\xff"}', "application/json", 400, "bad-request", "body"),
    (b'{"sql": "SELECT \\u0000"}', "application/json", 400, "bad-request", "sql"),
    (b'{"sql": "' + b"x" * 20_001 + b'"}', "application/json", 400, "bad-request", "sql"),
    (b'{"sql": "' + b"x" * 300_000 + b'"}', "application/json", 413, "too-large", "bytes"),
    (b"[" * 200_000, "application/json", 400, "bad-request", "body"),
    (b'{"sql": "SELECT 1"}', "text/plain", 415, "wrong-content", "text/plain"),
    (b"sql=SELECT+1", "application/x-www-form-urlencoded", 415, "wrong-content", "application/json"),
]


@pytest.mark.parametrize(("body", "media", "status", "kind", "said"), BODIES)
def test_a_body_that_is_no_query(served: Api, body: bytes, media: str, status: int, kind: str, said: str) -> None:
    address = f"/api/v1/runs/{served.first}/query"
    response = served.client.post(address, content=body, headers={"Content-Type": media})
    assert said in checked(response, status, kind)["detail"]


def test_a_query_of_a_run_that_there_is_not(served: Api) -> None:
    checked(served.client.post("/api/v1/runs/nix/query", json={"sql": "SELECT 1"}), 404, "unknown-run")


def test_the_schema_lists_every_table_and_column(served: Api) -> None:
    tables = {table["name"]: table for table in served.get(f"/runs/{served.first}/tables").json()["tables"]}
    names = [row["name"] for row in served.query("SHOW TABLES").json()["rows"]]
    assert set(names) == set(tables)
    assert tables["steps"]["rows"] == served.query("SELECT COUNT(*) AS rows FROM steps").json()["rows"][0]["rows"]
    columns = [column["name"] for column in served.query("SELECT * FROM slices LIMIT 1").json()["columns"]]
    assert [column["name"] for column in tables["slices"]["columns"]] == columns
    units = {column["name"]: column["unit"] for column in tables["slices"]["columns"]}
    assert units["duration_ns"] == "ns"
