"""Reading the database export of an Ascend rank directory."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ascend_files import EPOCH_NS, GROUP, rank_directory, read, read_db, write_database, write_kernels

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import AscendDb


def test_a_database_gives_kernels_operators_calls_and_steps(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path))

    tables, facts = read(AscendDb(), path.parent.parent)

    kernel = tables["kernels"].row(0, named=True)
    assert (kernel["name"], kernel["type"], kernel["core"]) == ("MatMul_1", "MatMulV3", "AI_CORE")
    assert (kernel["block_dim"], kernel["state"], kernel["step"]) == (24, None, 5)
    assert (kernel["launch_start_ns"], kernel["launch_end_ns"]) == (EPOCH_NS + 3000, EPOCH_NS + 4000)
    assert tables["kernel_counters"]["aic_time_ns"].to_list() == [1250.0]
    assert tables["operators"].select("name", "duration_ns", "input_shapes").rows() == [("aten::mm", 1000, "8,16;16,4")]
    call = tables["collectives"].row(0, named=True)
    assert (call["group"], call["operation"], call["size_bytes"]) == (GROUP, "all_reduce", 2000)
    assert tables["steps"].select("step", "window_start_ns", "window_end_ns").rows() == [
        (5, EPOCH_NS + 5000, EPOCH_NS + 9000)
    ]
    assert (facts["rank"], facts["process"], facts["format"]) == (0, 4242, "ascend_db")
    assert "issues" not in tables


@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        ("COMPUTE_TASK_INFO", "kernel_counters"),
        ("COMMUNICATION_OP", "collectives"),
        ("PYTORCH_API", "operators"),
        ("TASK_PMU_INFO", "kernel_counters"),
    ],
)
def test_a_missing_table_costs_only_its_own_part(tmp_path: Path, missing: str, gone: str) -> None:
    path = write_database(rank_directory(tmp_path), leave_out=(missing,))

    tables = read_db(path.parent)

    assert gone not in tables
    assert tables["slices"].height >= 3


def test_reading_writes_nothing_beside_the_database(tmp_path: Path) -> None:
    output = write_database(rank_directory(tmp_path)).parent
    before = sorted(path.name for path in output.iterdir())

    read_db(output)

    assert sorted(path.name for path in output.iterdir()) == before


def test_a_cut_database_is_reported_not_raised_through(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path))
    path.write_bytes(path.read_bytes()[:3000])

    with pytest.raises(UnreadableInput, match="is empty or not a readable database"):
        read_db(path.parent)


def test_with_both_exports_the_database_is_read_and_that_is_told(tmp_path: Path) -> None:
    output = write_kernels(rank_directory(tmp_path))
    write_database(output)

    tables = read_db(output.parent)

    assert tables["kernels"].height == 2
    assert "holds both a text and a database export" in tables["issues"]["problem"][0]


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_changes_that_are_not_in_the_file_yet_are_reported(tmp_path: Path, ending: str) -> None:
    output = rank_directory(tmp_path)
    path = write_database(output)
    beside = path.with_name(path.name + ending)
    for content in (b"", b"anything"):
        beside.write_bytes(content)

        tables = read_db(output.parent)

        problems = tables["issues"]["problem"].to_list() if "issues" in tables else []
        assert any(beside.name in problem for problem in problems) == bool(content)
        assert tables["kernels"].height == 2
        assert beside.read_bytes() == content


def test_ranges_and_points_of_mstx_are_read_with_their_names(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE MSTX_EVENTS (startNs, endNs, eventType, message, globalTid, connectionId)")
        database.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(9001, "train_step"), (9002, "saved")])
        rows = [(EPOCH_NS + 100, EPOCH_NS + 900, 2, 9001, 7, 55), (EPOCH_NS + 500, EPOCH_NS + 500, 0, 9002, 7, None)]
        database.executemany("INSERT INTO MSTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", rows)

    slices = read_db(path.parent)["slices"]

    marked = slices.filter(slices["process"] == "MSTX").sort("start_ns")
    assert marked.select("category", "name", "duration_ns", "correlation").rows() == [
        ("annotation", "train_step", 800, 55),
        ("mark", "saved", 0, None),
    ]


def _mark_calls(path: Path) -> None:
    """Add marked calls: two with tasks on the device, one without, and a mark of another domain."""
    call = '{{"streamId":"2","count":"{}","dataType":"fp16","groupName":"{}","opName":"HcclAllReduce"}}'
    texts = {9001: call.format(512, "10.0.0.1%eth0_60000_0_1"), 9002: "communication", 9003: "default"}
    texts |= {9004: "MSTX_RANGE", 9005: '{"opName": "cut'}
    with closing(sqlite3.connect(path)) as database, database:
        (columns,) = zip(*((row[1],) for row in database.execute("PRAGMA table_info(TASK)")), strict=True)
        database.execute("CREATE TABLE MSTX_EVENTS (startNs, endNs, message, domainId, globalTid, connectionId)")
        database.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", texts.items())
        marks = [(9001, 9002, 71), (9001, 9002, 72), (9001, 9002, 73), (9005, 9002, 74), (9001, 9003, 75)]
        rows = [(EPOCH_NS + 100, EPOCH_NS + 200, text, domain, 7, mark) for text, domain, mark in marks]
        database.executemany("INSERT INTO MSTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", rows)
        tasks = [(71, 6000, 6500), (72, 7000, 7001), (72, 7400, 7401), (75, 8000, 8100)]
        for number, (mark, start, end) in enumerate(tasks):
            values = {"startNs": EPOCH_NS + start, "endNs": EPOCH_NS + end, "globalTaskId": 9100 + number}
            values |= {"taskType": 9004, "connectionId": mark}
            cells = [values.get(name, 0) for name in columns]
            database.execute(f"INSERT INTO TASK VALUES ({', '.join('?' * len(cells))})", cells)


def test_marks_of_communication_are_calls_where_the_device_recorded_none(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path), leave_out=("COMMUNICATION_OP",))
    _mark_calls(path)

    tables = read_db(path.parent)

    calls = tables["collectives"].select("operation", "name", "size_bytes", "start_ns", "duration_ns")
    assert calls.rows() == [
        ("all_reduce", "HcclAllReduce", 1024, EPOCH_NS + 6000, 500),
        ("all_reduce", "HcclAllReduce", 1024, EPOCH_NS + 7000, 401),
    ]
    assert tables["collectives"]["group"].n_unique() == 1
    problems = "; ".join(tables["issues"]["problem"])
    assert "gives the communication calls, by the framework's marks" in problems
    assert "marks 1 communication calls that no task of the device belongs to" in problems
    assert "table COMMUNICATION_OP" not in problems


def test_marks_of_communication_are_no_calls_beside_those_of_the_device(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path))
    recorded = read_db(path.parent)["collectives"]
    _mark_calls(path)

    assert read_db(path.parent)["collectives"].equals(recorded)


def test_a_copy_has_its_direction(tmp_path: Path) -> None:
    path = write_database(rank_directory(tmp_path))
    with closing(sqlite3.connect(path)) as database, database:
        (columns,) = zip(*((row[1],) for row in database.execute("PRAGMA table_info(TASK)")), strict=True)
        database.execute("INSERT INTO STRING_IDS VALUES (9003, 'MEMCPY_ASYNC')")
        values = {"startNs": EPOCH_NS + 5100, "endNs": EPOCH_NS + 5200, "globalTaskId": 9100, "taskType": 9003}
        cells = [values.get(name, 0) for name in columns]
        database.execute(f"INSERT INTO TASK VALUES ({', '.join('?' * len(cells))})", cells)
        database.execute("CREATE TABLE IF NOT EXISTS MEMCPY_INFO (globalTaskId, size, memcpyOperation)")
        database.execute("INSERT INTO MEMCPY_INFO VALUES (9100, 4096, 2)")

    kernels = read_db(path.parent)["kernels"]

    copy = kernels.filter(kernels["kind"] == "memory")
    assert copy.select("name", "direction", "size_bytes").rows() == [("MEMCPY_ASYNC", "device to host", 4096)]
