"""An Ascend recording that is read in pieces gives the rows of the whole recording."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from ascend_files import (
    CALLS,
    CANN,
    EPOCH_US,
    HARDWARE,
    PYTHON,
    TraceEvents,
    kernel_row,
    rank_directory,
    read,
    read_text,
    write_communication,
    write_kernels,
)
from comparable import comparable
from polars.testing import assert_frame_equal

from stepscope.sources import flows, spool
from stepscope.sources.ascend import AscendDb, AscendText, database, db_device, timeline, trace_view
from stepscope.sources.csv_files import reading


def messy_rank(parent: Path, seed: int) -> Path:
    """A rank directory whose ranges nest, overlap and outlive many others, and whose kernels lag behind."""
    rng = random.Random(seed)
    output = rank_directory(parent)
    trace, rows = TraceEvents(sides=False), []
    add = trace.add
    for step in (3, 4, 5):
        add(f"ProfilerStep#{step}", PYTHON, 1, 2000 * step, 1990, "cpu_op")
    for number in range(1, 200):
        at = rng.randrange(6000, 12000)
        stack = rng.choice(("a.py(1): f;\r\nb.py(2): g", "c.py(3): h", ""))
        length = rng.choice((1, 5, 30, 200, 2500))
        name, thread = rng.choice(("aten::mm", f"op {number}")), rng.choice((1, 2))
        add(name, PYTHON, thread, at, length, "cpu_op", **{"Call stack": stack})
        add("Enqueue@mm", PYTHON, 1, at + 1, 2, "enqueue", correlation_id=number)
        add("Dequeue@mm", PYTHON, 2, at + rng.randrange(3, 900), 2, "dequeue", correlation_id=number)
        add("Node@launch", CANN, 2, at + 5, 4, connection_id=number)
        add("Runtime@rtLaunch", CANN, 2, at + 6, 1, connection_id=number)
        begun = at + rng.randrange(-3, 700)
        task = {"Task Type": "AI_CORE", "Stream Id": 2, "connection_id": number}
        add("MatMul_1", HARDWARE, 2, begun, 100.5, **task)
        if number % 3:
            rows.append(kernel_row(rng.choice((3, 4, 5)), begun))
        if number % 10 == 0:
            add("MEMCPY_ASYNC", HARDWARE, 2, begun, 20, **{"Task Type": "MEMCPY_ASYNC", "size(B)": 4096})
            add(f"hcom_allReduce__653_{number}_1", CALLS, 0, begun, 50, connection_id=number, data_type="FP16", count=8)
            add("Notify_Wait", CALLS, 1, begun, 30)
            for phase, time in (("s", at), ("f", at + 700)):
                arrow = {"ph": phase, "id": number, "cat": "fwdbwd", "name": "x", "pid": PYTHON, "tid": 1}
                trace.events.append({**arrow, "ts": f"{EPOCH_US + time}.000"})
    rng.shuffle(trace.events)
    trace.write(output)
    write_kernels(output, rows=rows)
    return write_communication(output).parent


def small_pieces(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Let everything be read, kept and cut in very small parts."""
    monkeypatch.setattr(timeline, "PIECE_ROWS", rows)
    monkeypatch.setattr(spool, "_SAMPLED", 1)
    monkeypatch.setattr(flows, "PART_ROWS", 10)
    monkeypatch.setattr(reading, "PART_BYTES", 2000)
    monkeypatch.setattr(database, "_ROWS_AT_ONCE", rows)
    monkeypatch.setattr(database, "_CELLS_AT_ONCE", 10 * rows)
    monkeypatch.setattr(db_device, "_TASKS_AT_ONCE", rows)
    for module in (spool, timeline, trace_view, db_device):
        monkeypatch.setattr(module, "MEMORY_BYTES", 10_000)


def assert_same(got: dict[str, pl.DataFrame], whole: dict[str, pl.DataFrame]) -> None:
    """Both hold the same rows."""
    expected, rows = comparable(whole), comparable(got)
    assert rows.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(rows[name], frame)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [50, 400])
def test_a_text_export_in_pieces_gives_the_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, rows: int
) -> None:
    rank = messy_rank(tmp_path, seed)
    whole, facts = read(AscendText(), rank)
    assert {"slices", "operators", "stacks", "kernels", "collectives", "flows", "operator_totals"} <= whole.keys()
    assert whole["kernels"].filter(pl.col("kind") != "memory")["launch_start_ns"].null_count() == 0

    small_pieces(monkeypatch, rows)
    cut, cut_facts = read(AscendText(), rank)

    assert cut_facts == facts
    assert_same(cut, whole)


def test_a_database_in_pieces_gives_the_rows_of_the_whole(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = sorted((shared / "data" / "ascend" / "db_8rank").glob("*_ascend_pt"))[0]
    whole, facts = read(AscendDb(), rank)
    small_pieces(monkeypatch, 400)
    cut, cut_facts = read(AscendDb(), rank)
    assert cut_facts == facts
    assert_same(cut, whole)


def test_a_row_of_a_large_csv_file_may_go_on_behind_the_end_of_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [kernel_row(5, 1000.125 + 200 * n, f"MatMul_{n}") for n in range(300)]
    output = write_kernels(rank_directory(tmp_path), rows=rows)
    for size in (700, 997, 4096):
        monkeypatch.setattr(reading, "PART_BYTES", size)
        tables = read_text(output.parent)
        assert tables["kernels"]["name"].to_list() == [f"MatMul_{n}" for n in range(300)]
        assert set(tables["kernels"]["input_shapes"]) == {"8,16;16,4"}


@pytest.mark.parametrize("odd", ["1,2,3", "", kernel_row(5, 1.0) + ",more"])
def test_an_odd_row_where_a_part_begins_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    output = rank_directory(tmp_path)
    rows = [kernel_row(5, 1000.125 + 200 * n, f"MatMul_{n:03d}") for n in range(100)]
    part = len(rows[0]) + 1
    for at in range(1, 6):
        monkeypatch.setattr(reading, "PART_BYTES", at * part)
        write_kernels(output, rows=[*rows[:at], odd, *rows[at:]])
        tables = read_text(output.parent)
        assert {f"MatMul_{n:03d}" for n in range(100)} <= set(tables["kernels"]["name"])


@pytest.mark.parametrize("content", [b"\0" * 200_000, b"Name,Start Time(us)\rx,1\r"])
def test_a_file_that_is_no_table_hides_no_other(tmp_path: Path, content: bytes) -> None:
    output = write_communication(rank_directory(tmp_path))
    (output / "kernel_details.csv").write_bytes(content)
    tables = read_text(output.parent)
    assert tables["collectives"].height
    assert any("kernel_details.csv" in file for file in tables["issues"]["file"])
