"""Rows that a table cannot hold: left out and counted, whatever reader writes them, at no cost to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from recordings import EPOCH_NS, MS, Raw
from stepscope import open_run
from stepscope.store import MemorySink, StoreSink
from stepscope.tables import KERNELS, LINKS, RANKS, SLICES, TRANSPORTS

LINK = {"source": 0, "destination": 1, "transport": "HCCS", "size_bytes": 8, "duration_ns": 5}
BEYOND_32, BEYOND_64 = 2**40, 2**64


def written(table: Any, frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """What a sink keeps of a frame."""
    sink = MemorySink("toy", path=Path("/data/job"))
    sink.write(table, frame)
    return sink.close()


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("source", BEYOND_32, "source is 1099511627776"),
        ("size_bytes", BEYOND_64, "size_bytes is 18446744073709551616"),
        ("size_bytes", float("nan"), "size_bytes is nan"),
        ("size_bytes", None, "size_bytes is missing"),
        ("destination", "many", "destination is many"),
        ("size_bytes", "9" * 500, f"size_bytes is {'9' * 40}..."),
    ],
)
def test_a_row_that_a_table_refuses_is_left_out_and_counted(column: str, value: object, named: str) -> None:
    cells = pl.Series(column, [value, LINK[column], value], strict=False)
    rows = pl.DataFrame([LINK] * 3).with_columns(cells)

    tables = written(LINKS, rows)

    assert tables["links"].select(*LINK).to_dicts() == [LINK]
    (issue,) = tables["issues"].to_dicts()
    assert (issue["severity"], issue["file"], issue["place"], issue["lost"]) == ("error", "/data/job", "links", 2)
    assert f"({named})" in issue["problem"]


def test_cells_of_a_kind_that_no_table_has_are_refused_too() -> None:
    tables = written(LINKS, pl.DataFrame([{**LINK, "size_bytes": [1, 2]}]))

    assert tables.keys() == {"issues"}
    assert tables["issues"]["lost"].to_list() == [1]


def test_refused_rows_of_all_batches_are_one_issue_a_table() -> None:
    sink = MemorySink("toy", path=Path("/data/job"))
    for _ in range(3):
        sink.write(TRANSPORTS, pl.DataFrame({"name": ["a", "b"], "transport": ["SDMA", None]}))
        sink.write(SLICES, pl.DataFrame({"slice": [1], "start_ns": [1], "duration_ns": [1], "category": ["other"]}))

    tables = sink.close()

    assert tables["issues"].select("place", "lost").rows() == [("transports", 3), ("slices", 3)]
    assert tables["transports"]["name"].to_list() == ["a", "a", "a"]
    assert "slices" not in tables


def test_a_stored_input_has_the_same_rows_and_issues(tmp_path: Path) -> None:
    sink = StoreSink(tmp_path, "toy", path=Path("/data/job"))
    sink.write(LINKS, pl.DataFrame([LINK, {**LINK, "source": BEYOND_32}]))

    assert {name: table.rows for name, table in sink.close().items()} == {"links": 1, "issues": 1}


def test_a_fact_of_a_rank_that_does_not_fit_costs_no_other_fact() -> None:
    sink = MemorySink("toy", path=Path("/data/job"))
    sink.write(RANKS, RANKS.unchecked(rank=[BEYOND_32], world_size=[8], process=["many"], host=["a"]))

    issues = sink.close()["issues"]

    assert (sink.facts["rank"], sink.facts["world_size"], sink.facts["host"]) == (None, 8, "a")
    assert issues["lost"].to_list() == [2]


def test_a_column_that_a_table_does_not_have_is_still_a_mistake_of_the_reader() -> None:
    with pytest.raises(ValueError, match="has no column"):
        written(KERNELS, pl.DataFrame({"colour": ["red"]}))


def test_a_trace_with_a_stream_beyond_32_bits_is_of_no_known_stream(tmp_path: Path) -> None:
    def kernel(start: int, stream: int) -> dict[str, object]:
        args = {"device": 0, "stream": stream, "correlation": start}
        return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": 5, "args": args}

    events = [kernel(start, BEYOND_32 if start == 30 else 7) for start in (10, 20, 30, 40)]
    device = {"deviceProperties": [{"id": 0, "name": "A100"}], "traceEvents": events}
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, **device}))

    run = open_run(tmp_path, use_store=False)

    assert not run.unread
    assert run.table("kernels").collect()["stream"].to_list() == [7, 7, None, 7]


def test_a_rank_beyond_32_bits_in_the_name_of_a_file_ends_no_other_rank(tmp_path: Path) -> None:
    content = "op_type,type_occurrences,total_compute_time\nMatMul,2,1.0\n"
    for rank in (0, BEYOND_32):
        (tmp_path / f"cpu_op_type_info_{rank}.csv").write_text(content)

    run = open_run(tmp_path, use_store=False)

    assert not run.unread
    assert 0 in [rank.rank for rank in run.ranks]


def test_numbers_beyond_32_bits_in_names_of_raw_files_are_of_no_iteration(tmp_path: Path) -> None:
    timeline = tmp_path / "PROF_000001_20251009163000000_ABC" / "device_3" / "timeline"
    timeline.mkdir(parents=True)
    event = {"ph": "X", "name": "MatMul", "pid": 30, "tid": 0, "ts": "1760000000000500.000", "dur": 5, "args": {}}
    process = {"ph": "M", "name": "process_name", "pid": 30, "tid": 0, "args": {"name": "Task Scheduler"}}
    (timeline / f"task_time_3_1_{2**63}.json").write_text(json.dumps([process, event]))

    run = open_run(tmp_path, use_store=False)

    assert not run.unread
    assert (run.ranks[0].rows["slices"], run.table("steps").collect()["step"].to_list()) == (1, [0])


@pytest.mark.parametrize("processors", [-(2**31) - 1, 2**40])
def test_a_number_of_processors_that_no_machine_has_ends_no_recording(tmp_path: Path, processors: int) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10 * MS))
    worker = [MS, MS, "", "", 4096, 4096, "", "", 0, 0, 2, 3, "", processors]
    raw.add("host", *([EPOCH_NS + at * MS, "worker", 9, "loader", *worker] for at in (1, 2)))

    run = open_run(tmp_path, use_store=False)

    assert not run.unread
    assert run.table("host_usage").collect()["processors"].to_list() == [None, None]
