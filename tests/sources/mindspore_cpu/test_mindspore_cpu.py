"""MindSpore's files of operators on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from every_kind import CPU_MEMORY_HEADER, CPU_OPERATORS_HEADER, CPU_TYPES, CPU_TYPES_HEADER

from parts import taken
from stepscope.sources.base import Sink
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import CpuFiles
from stepscope.sources.mindspore_cpu.memory import read_memory
from stepscope.sources.mindspore_cpu.totals import read_totals

TYPES, DETAILS = "cpu_op_type_info_0.csv", "cpu_op_detail_info_0.csv"
TIMES, LAUNCHES, MEMORY = "cpu_op_execute_timestamp_0.txt", "cpu_framework_0.txt", "cpu_ms_memory_record_0.txt"
DETAIL_ROWS = (
    "Host,MatMul,MatMul-op1,Default/fc/MatMul-op1,2,2.0,1.0,0.5,Default,77\n"
    "Host,MatMul,MatMul-op2,Gradients/Default/MatMul-op2,2,1.0,0.5,0.25,Gradients,77\n"
    "Host,Add,Add-op3,Default/Add-op3,2,1.0,0.5,0.25,Default,77\n"
)
RUNS = "Default/fc/MatMul-op1;HostCpuOps;1000,0.5,0 9000,0.25,0 \nDefault/Add-op3;HostCpuOps;5000,0.001,7\n"
Issues = list[tuple[str, str]]


def read(
    directory: Path, files: dict[str, str], reader: Callable[[CpuFiles, Sink], pl.DataFrame]
) -> tuple[pl.DataFrame, Issues]:
    """What a reader makes of files that are written first, and issues."""
    for name, text in files.items():
        (directory / name).write_text(text)
    found, rows = CpuFiles.among(directory.iterdir()), list[pl.DataFrame]()
    _, issues = taken(lambda sink: rows.append(reader(found, sink)))
    return rows[0], issues


def totals(directory: Path, files: dict[str, str]) -> tuple[pl.DataFrame, Issues]:
    """Rows of `operator_totals`, and issues."""
    return read(directory, files, lambda found, sink: read_totals(found, "CPU", sink))


def executions(directory: Path, times: str, launches: str | None = None) -> tuple[pl.DataFrame, Issues]:
    """Executions of operators, and issues."""
    files = {TIMES: times} | ({} if launches is None else {LAUNCHES: launches})
    return read(directory, files, lambda found, sink: read_executions(found.times or directory, found.launches, sink))


def curve(directory: Path, text: str) -> tuple[list[tuple[object, ...]], Issues]:
    """Rows of the memory curve, and issues."""
    rows, issues = read(directory, {MEMORY: text}, lambda found, sink: read_memory(found.memory or directory, sink))
    return rows.select("time_ns", "allocated_bytes", "reserved_bytes", "active_bytes").rows(), issues


def test_totals_are_listed_by_type_and_by_operator_in_ns(tmp_path: Path) -> None:
    rows, issues = totals(tmp_path, {TYPES: CPU_TYPES, DETAILS: CPU_OPERATORS_HEADER + DETAIL_ROWS})

    assert rows["unit"].unique().to_list() == ["CPU"]
    of_types = rows.filter(pl.col("level") == "type").select("name", "type", "count", "operators", "total_ns")
    assert of_types.rows() == [("MatMul", "MatMul", 4, 2, 3_000_000), ("Add", "Add", 2, 1, 1_000_000)]
    columns = ("name", "full_name", "type", "core", "count", "total_ns", "subgraph", "process")
    first = rows.filter(pl.col("level") == "operator").select(columns).row(0)
    assert first == ("MatMul-op1", "Default/fc/MatMul-op1", "MatMul", "Host", 2, 2_000_000, "Default", 77)
    assert issues == []


def test_types_are_summed_from_operators_where_their_file_is_lost(tmp_path: Path) -> None:
    again = "Host,Add,Add-op3,Default/Add-op3,2,1.0,0.5,0.2,Other,77\n"
    text = CPU_OPERATORS_HEADER + DETAIL_ROWS.replace("0.25,D", "0.2,D") + again

    rows, issues = totals(tmp_path, {DETAILS: text, TYPES: ""})

    of_types = rows.filter(pl.col("level") == "type").select("name", "count", "operators", "total_ns")
    assert of_types.rows() == [("MatMul", 4, 2, 3_000_000), ("Add", 4, 1, 2_000_000)]
    assert ("error", TYPES) in issues


def test_a_header_may_say_that_times_are_us(tmp_path: Path) -> None:
    header = CPU_TYPES_HEADER.replace("total_compute_time", "total_time(us)").replace("(ms)", "(us)")

    rows, _ = totals(tmp_path, {TYPES: header + CPU_TYPES.removeprefix(CPU_TYPES_HEADER)})

    assert rows["total_ns"].to_list() == [3_000, 1_000]


def test_shares_may_be_percents(tmp_path: Path) -> None:
    text = CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,75\nAdd,2,1,1.0,0.5,25\n"

    assert totals(tmp_path, {TYPES: text})[1] == []


@pytest.mark.parametrize(
    ("text", "names", "issues"),
    [
        (CPU_TYPES_HEADER, [], [("warning", TYPES)]),
        ("kernel_type,total_time\nAdd,1\n", [], [("error", TYPES)]),
        (CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,1\nAdd,2,1", ["MatMul"], [("error", TYPES)]),
        (CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,1\nAdd,two,1,1,0.5,0.5\n", ["MatMul"], [("error", TYPES)]),
        (CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,1\nAdd,-2,1,1,0.5,0.5\n", ["MatMul"], [("error", TYPES)]),
        (CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.5,1\n", ["MatMul"], [("note", TYPES)]),
        (CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,0.5\n", ["MatMul"], [("note", TYPES)]),
        (CPU_TYPES_HEADER.replace("\n", ",hue\n") + "MatMul,4,2,3,0.75,1,red\n", ["MatMul"], [("note", TYPES)]),
    ],
)
def test_damage_in_totals_costs_rows_and_is_told(tmp_path: Path, text: str, names: list[str], issues: Issues) -> None:
    rows, told = totals(tmp_path, {TYPES: text})

    assert rows["name"].to_list() == names
    assert told == issues


def test_every_run_has_its_time_and_the_shapes_of_its_launch(tmp_path: Path) -> None:
    launches = (
        "MatMul;MatMul-op1;3;input_1:[2, 3];input_2:NoShape;\n;;3;\nAdd;Add-op3;3;input_1:[];\n"
        "MatMul;MatMul-op1;3;input_1:[4, 3];\n"
    )

    rows, issues = executions(tmp_path, RUNS, launches)

    assert rows.select("name", "short", "type", "start_ns", "duration_ns", "thread", "input_shapes").rows() == [
        ("Default/fc/MatMul-op1", "MatMul-op1", "MatMul", 1000, 500_000, "0", "[[2, 3], null]"),
        ("Default/Add-op3", "Add-op3", "Add", 5000, 1_000, "7", "[[]]"),
        ("Default/fc/MatMul-op1", "MatMul-op1", "MatMul", 9000, 250_000, "0", "[[4, 3]]"),
    ]
    assert issues == []


def test_where_launches_and_runs_differ_in_number_only_what_all_share_is_a_shape(tmp_path: Path) -> None:
    launches = "MatMul;MatMul-op1;3;input_1:[2, 3];\nAdd;Add-op3;3;input_1:[1];\nAdd;Add-op3;3;input_1:[2];\n"

    rows, _ = executions(tmp_path, RUNS, launches)

    assert rows["input_shapes"].to_list() == ["[[2, 3]]", None, "[[2, 3]]"]


@pytest.mark.parametrize(
    ("text", "runs", "issues"),
    [
        ("", 0, [("note", TIMES)]),
        ("no semicolons\n", 0, [("warning", TIMES)]),
        (RUNS + "Default/Mul-op4;HostCpuOps;7000,0.1", 3, [("warning", TIMES)] * 2),
        (RUNS + "Default/Mul-op4;HostCpuOps;soon,0.1,0 8000,late,0 8500,0.1,0\n", 4, [("warning", TIMES)]),
        (RUNS + "Default/Mul-op4;HostCpuOps;7000,-0.1,0\n", 3, [("warning", TIMES)]),
        (RUNS + "Default/Mul-op4;HostCpuOps;99999999999999999999,0.1,0\n", 3, [("warning", TIMES)]),
        (RUNS + "Default/Mul-op4;HostCpuOps;7000,nan,0 7000,inf,0\n", 3, [("warning", TIMES)]),
    ],
)
def test_damage_in_times_costs_runs_and_is_told(tmp_path: Path, text: str, runs: int, issues: Issues) -> None:
    rows, told = executions(tmp_path, text)

    assert rows.height == runs
    assert told == issues


@pytest.mark.parametrize("launches", ["", "\x00\x01", "a;b\n", "MatMul;MatMul-op1;3;input_1:[2\n"])
def test_damaged_launches_cost_shapes_alone(tmp_path: Path, launches: str) -> None:
    rows, _ = executions(tmp_path, RUNS, launches)

    assert rows.height == 3
    assert rows["start_ns"].to_list() == [1000, 5000, 9000]


def test_the_memory_curve_has_its_columns_by_name(tmp_path: Path) -> None:
    found, issues = curve(tmp_path, CPU_MEMORY_HEADER + "10,1,4,2\n20,3,4,3\n")

    assert found == [(10, 1, 4, 2), (20, 3, 4, 3)]
    assert issues == []
    assert curve(tmp_path, "Total Reserved(Byte),Timestamp(ns)\n4,10\n")[0] == [(10, None, 4, None)]


@pytest.mark.parametrize(
    ("text", "rows", "issues"),
    [
        ("", 0, [("error", MEMORY)]),
        (CPU_MEMORY_HEADER, 0, [("warning", MEMORY)]),
        ("op_type,total_time\n1,2\n", 0, [("error", MEMORY)]),
        (CPU_MEMORY_HEADER + "10,1,4,2\n20,3,4", 1, [("warning", MEMORY)]),
        (CPU_MEMORY_HEADER + "10,1,4,2\n20,3\nsoon,3,4,3\n30,x,4,3\n", 1, [("warning", MEMORY)]),
    ],
)
def test_damage_in_the_memory_curve_costs_lines_and_is_told(
    tmp_path: Path, text: str, rows: int, issues: Issues
) -> None:
    found, told = curve(tmp_path, text)

    assert len(found) == rows
    assert told == issues
