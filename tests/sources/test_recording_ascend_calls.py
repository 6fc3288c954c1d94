"""Operator windows of Ascend devices: what each window counts and names anew, and what is summed over all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from ascend_files import EPOCH_NS as ASCEND_NS
from ascend_files import rank_directory as written_by_hand
from ascend_files import write_communication, write_kernels, write_trace
from ascend_files import write_database as write_by_hand
from ascend_windows import windowed
from test_agree import job
from test_recording import read

from recordings import EPOCH_NS as RECORDED_NS
from recordings import MS, Raw


def test_calls_outside_of_all_windows_come_from_the_marks(tmp_path: Path) -> None:
    trace = job()[0]
    raw = windowed(tmp_path / "job", trace, "db", [(4,)])
    raw.describe(groups=[{"group": "0", "name": "default_pg", "members": [0, 1, 2, 3]}])
    for number, span in trace.steps:
        start = span.start_ns - RECORDED_NS
        detail = {"group": "0", "size_bytes": 4096, "group_size": 4}
        raw.mark("collective", "all_reduce", start + 1000, start + 2000, number, detail)

    tables, _ = read(raw)

    calls = tables["collectives"].select("step", "on_device", "sequence", "size_bytes")
    assert calls.rows() == [(3, False, 0, 4096), (4, True, 0, 4096), (4, True, 1, 4096), (5, False, 1, 4096)]
    assert tables["collectives"]["collective"].to_list() == [0, 1, 2, 3]
    assert sorted(tables["groups"]["name"]) == ["default_pg", "dp"]


def hand_written(tmp_path: Path, write: Callable[[Path], object]) -> Raw:
    """Two windows with the same export, of two steps of 10 ms; that of the second is to be 100 ms later."""
    raw = Raw(tmp_path / "job", about={"device_kind": "npu"})
    for number in range(2):
        start = ASCEND_NS + number * 100 * MS - RECORDED_NS
        raw.window(number, start, start + 20 * MS, "ascend", {})
        for step in range(2):
            at = start + step * 10 * MS
            raw.mark("step", str(2 * number + step + 1), at, at + 10 * MS, 2 * number + step + 1)
        output = written_by_hand(raw.directory / "windows" / f"{number:06d}")
        write(output)
        for file in output.iterdir():
            if number and file.suffix == ".db":
                delay(file, 100 * MS)
            elif number:
                file.write_text(file.read_text().replace("17600000000", "17600000001"))
    return raw


def delay(database: Path, ns: int, tables: Sequence[str] = ()) -> None:
    """Move the times of a database, or of some tables in it."""
    connection = sqlite3.connect(database)
    every = [name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()]
    for table in tables or every:
        columns = [
            row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] in ("startNs", "endNs")
        ]
        for column in columns:
            connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS INTEGER) + {ns}")
    connection.commit()
    connection.close()


def write_all_texts(output: Path) -> None:
    """The text export with communication, memory and totals."""
    write_kernels(output)
    write_trace(output)
    write_communication(output)
    at = ASCEND_NS // 1000
    memory = "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Device Type"
    (output / "operator_memory.csv").write_text(f"{memory}\naten::mm,2,{at}.5,{at + 9},,NPU:3\n")
    curve = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type"
    (output / "memory_record.csv").write_text(f"{curve}\nPTA,{at + 1},1,2,1,NPU:3\n")
    totals = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"
    (output / "step_trace_time.csv").write_text(f"{totals}\n3,5,201,499,1,500,10\n3,6,201,499,1,500,20\n")


def test_databases_keep_operators_and_kernels_together(tmp_path: Path) -> None:
    """Kernels are launched in the step after the one whose operator asked for them, which is theirs."""

    def write(output: Path) -> None:
        delay(write_by_hand(output), 10 * MS, ["CANN_API", "TASK"])

    tables, _ = read(hand_written(tmp_path, write))

    kernels = tables["kernels"].filter(pl.col("kind") == "compute")
    start, late = ASCEND_NS + 10 * MS, 100 * MS
    assert kernels.select("step", "start_ns", "launch_start_ns").rows() == [
        (1, start + 5000, start + 3000),
        (3, start + 5000 + late, start + 3000 + late),
    ]
    assert kernels["correlation"].n_unique() == 2
    assert tables["kernel_counters"].select("kernel", "aic_time_ns").rows() == [
        (number, 1250.0) for number in kernels["kernel"]
    ]
    assert tables["operators"].select("name", "step").rows() == [("aten::mm", 1), ("aten::mm", 3)]
    assert "issues" not in tables


def test_memory_and_totals_are_those_of_all_windows(tmp_path: Path) -> None:
    raw = hand_written(tmp_path, write_all_texts)

    tables, _ = read(raw)

    late = 100 * MS
    allocations = tables["allocations"].select("allocation_ns", "release_ns", "size_bytes")
    first = (ASCEND_NS + 500, ASCEND_NS + 9000, 2048)
    assert allocations.rows() == [first, (first[0] + late, first[1] + late, 2048)]
    assert tables["memory_curve"]["time_ns"].to_list() == [ASCEND_NS + 1000, ASCEND_NS + 1000 + late]
    assert tables["counters"].select("time_ns", "value").rows() == [(ASCEND_NS, 1800), (ASCEND_NS + late, 1800)]
    free = [(1, 10_000), (2, 20_000), (3, 10_000), (4, 20_000)]
    assert tables["step_totals"].select("step", "free_ns").rows() == free
    kernels = tables["operator_totals"].filter(pl.col("level") == "kernel")
    assert kernels.select("name", "count", "total_ns").rows() == [("MatMulV3", 8, 804_000)]


def test_calls_of_one_name_in_two_windows_stay_two(tmp_path: Path) -> None:
    """Each window names its calls anew, so all of them have the names of those of the first."""
    raw = hand_written(tmp_path, write_all_texts)

    tables, _ = read(raw)

    calls = tables["collectives"]
    assert calls.select("step", "sequence", "size_bytes").rows() == [(step, step - 1, 2000) for step in range(1, 5)]
    assert calls["wait_ns"].to_list() == [290_000] * 4
    assert tables["transports"].select("step", "transport", "size_bytes").rows() == [
        (step, "SDMA", 4_000_000) for step in range(1, 5)
    ]
    links = tables["links"].filter(pl.col("name").is_null()).sort("step")
    assert links.select("step", "source", "destination").rows() == [(step, 4, 7) for step in range(1, 5)]
    flows = tables["flows"]
    assert flows.select("kind", "flow").is_duplicated().sum() == 0
    assert flows.height == 8


def test_without_steps_of_their_own_calls_are_of_the_steps_of_the_marks(tmp_path: Path) -> None:
    """What the analysis of communication says of a whole window cannot be told apart, and is summed up."""

    def write(output: Path) -> None:
        write_kernels(output, rows=[])
        write_trace(output)
        events = json.loads((output / "trace_view.json").read_text())
        unnumbered = [event for event in events if not event["name"].startswith("ProfilerStep#")]
        (output / "trace_view.json").write_text(json.dumps(unnumbered))
        write_communication(output)
        for name in ("communication.json", "communication_matrix.json"):
            kinds: dict[str, Any] = {"p2p": {}, "collective": {}}
            for step in json.loads((output / name).read_text()).values():
                kinds["collective"] |= step["collective"]
            (output / name).write_text(json.dumps({"step": kinds}))

    tables, _ = read(hand_written(tmp_path, write))

    assert tables["collectives"].select("step", "wait_ns").rows() == [(step, 290_000) for step in (1, 2, 3, 4)]
    assert tables["transports"].select("step", "size_bytes").rows() == [(step, 4_000_000) for step in (1, 2, 3, 4)]
    links = tables["links"].select("step", "name", "size_bytes")
    assert links.filter(pl.col("name").is_null()).rows() == [(None, None, 8_000_000)]
    assert links.drop_nulls("name")["step"].sort().to_list() == [2, 4]
    assert "issues" not in tables or "error" not in set(tables["issues"]["severity"])
