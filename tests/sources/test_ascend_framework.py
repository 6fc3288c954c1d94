"""What stands beside an export of MindSpore: operators on the CPU and data preparation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from ascend_files import EPOCH_NS, EPOCH_US, rank_directory, write_database, write_kernels

import stepscope
from parts import taken
from stepscope.sources.ascend import AscendDb, AscendText
from stepscope.sources.base import Source

NAME = "host_a_77_20251009163000000_ascend_ms"
OPERATORS = ("Default/fc/MatMul-op1", "Default/Add-op3")
TYPES = "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent\n"
AICPU = (
    "Device_id,Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),Dispatch_time(us),Total_time(us),"
    "Stream ID,Task ID\n"
)
Issues = list[tuple[str, str]]


def framework(root: Path, **changed: str) -> Path:
    """A rank directory whose FRAMEWORK folder has two operators that ran once each."""
    folder = root / "FRAMEWORK"
    folder.mkdir(parents=True)
    runs = [f"{name};HostCpuOps;{EPOCH_NS + 1000 * k},0.5,0\n" for k, name in enumerate(OPERATORS)]
    texts = {
        "cpu_op_execute_timestamp_0.txt": "".join(runs),
        "cpu_framework_0.txt": "MatMul;MatMul-op1;1;input_1:[2, 3];\nAdd;Add-op3;1;input_1:[2];\n",
        "cpu_op_type_info_0.csv": TYPES + "MatMul,1,1,0.5,0.5,0.5\nAdd,1,1,0.5,0.5,0.5\n",
        "cpu_ms_memory_record_0.txt": f"Timestamp(ns),Total Allocated(Byte)\n{EPOCH_NS},7\n",
    }
    for name, text in (texts | changed).items():
        if text:
            (folder / name).write_text(text)
    return root


def trace(root: Path, *names: str) -> None:
    """A trace of operators on the CPU, whose times are 37 ns late as MindSpore writes them."""
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir()
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "CPU OP"}},
        {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Scope Layer"}},
        {"ph": "X", "name": "Default", "pid": 3, "tid": 0, "ts": f"{EPOCH_US}.037", "dur": "501.000", "cat": ""},
    ]
    for k, name in enumerate(names):
        at = f"{EPOCH_US + k}.037"
        events.append({"ph": "X", "name": name, "pid": 2, "tid": 0, "ts": at, "dur": "500.000", "cat": ""})
    (output / "trace_view.json").write_text(json.dumps(events))


def read(source: Source, root: Path) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables and issues of a rank directory."""
    found = source.find(root, sorted(path.name for path in root.iterdir()))
    assert found is not None
    return taken(lambda sink: source.read(found.inputs[0], sink))


def test_operators_of_the_trace_have_types_and_shapes_and_their_exact_times_once(tmp_path: Path) -> None:
    root = framework(tmp_path / NAME)
    trace(root, *OPERATORS)

    tables, issues = read(AscendText(), root)

    rows = tables["operators"].select("name", "type", "input_shapes", pl.col("start_ns") - EPOCH_NS, "step")
    assert rows.rows() == [
        ("Default/fc/MatMul-op1", "MatMul", "[[2, 3]]", 0, 0),
        ("Default/Add-op3", "Add", "[[2]]", 1000, 0),
    ]
    assert tables["slices"]["category"].to_list() == ["operator", "annotation", "operator"]
    totals = tables["operator_totals"].select("unit", "level", "name", "total_ns").rows()
    assert sorted(totals) == [("CPU", "type", "Add", 500_000), ("CPU", "type", "MatMul", 500_000)]
    assert tables["memory_curve"].select("time_ns", "allocated_bytes").rows() == [(EPOCH_NS, 7)]
    assert issues == []


def test_a_directory_that_was_not_analysed_is_read_from_framework_alone(tmp_path: Path) -> None:
    framework(tmp_path / NAME)

    run = stepscope.open_run(tmp_path)

    assert run.table("operators").collect()["type"].to_list() == ["MatMul", "Add"]
    known = run.table("ranks").collect().row(0, named=True)
    known_as = (known["device_kind"], known["framework"], known["host"], known["process"])
    assert known_as == ("cpu", "mindspore", "host_a", 77)
    assert run.issues.is_empty()


@pytest.mark.parametrize("times", ["", "Default/Add-op3;HostCpuOps;1000,0.5,0\n"])
def test_the_trace_counts_where_framework_does_not_tell_when_operators_ran(tmp_path: Path, times: str) -> None:
    root = framework(tmp_path / NAME, **{"cpu_op_execute_timestamp_0.txt": times})
    trace(root, *OPERATORS)

    tables, _ = read(AscendText(), root)

    assert (tables["operators"]["start_ns"] - EPOCH_NS).to_list() == [37, 1037]


@pytest.mark.parametrize(
    ("stamp", "kept"),
    [("20251009085320500", 1), ("20251009085320100", 2), ("20251009165320500", 3), ("20259999999999999", 3)],
)
def test_what_a_memory_curve_repeats_of_earlier_windows_is_left_out(tmp_path: Path, stamp: str, kept: int) -> None:
    rows = "".join(f"{EPOCH_NS + at},7\n" for at in (0, 10**8, 10**9))
    curve = {"cpu_ms_memory_record_0.txt": f"Timestamp(ns),Total Allocated(Byte)\n{rows}"}
    root = framework(tmp_path / f"host_a_77_{stamp}_ascend_ms", **curve)

    tables, issues = read(AscendText(), root)

    assert tables["memory_curve"].height == kept
    assert issues == []


def test_a_trace_that_cannot_be_read_costs_the_trace_alone(tmp_path: Path) -> None:
    root = framework(tmp_path / NAME)
    trace(root)
    (root / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").write_text("nothing")

    tables, issues = read(AscendText(), root)

    assert tables["operators"].height == 2
    assert issues == [("error", "trace_view.json")]


@pytest.mark.parametrize(
    ("source", "write"), [(AscendText(), write_kernels), (AscendDb(), write_database)], ids=["text", "database"]
)
def test_operators_beside_those_of_a_device_are_in_a_list_of_their_own(
    tmp_path: Path, source: Source, write: Callable[[Path], object]
) -> None:
    output = rank_directory(tmp_path, NAME)
    write(output)
    root = framework(output.parent)

    tables, issues = read(source, root)

    of_cpu = tables["operator_totals"].filter(pl.col("unit") == "HOST_CPU")
    assert of_cpu["name"].to_list() == ["Add", "MatMul"]
    named = tables["operators"].filter(pl.col("name").is_in(OPERATORS))
    assert named["type"].to_list() == ["MatMul", "Add"]
    assert [severity for severity, _ in issues if severity != "note"] == []


def test_data_preparation_in_the_output_folder_is_read(tmp_path: Path) -> None:
    output = write_kernels(rank_directory(tmp_path, NAME))
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nPipeline,getNext,4,2.5,\n"
    )
    rows = "".join(f"3,{EPOCH_US + k}.5,GetNext_dequeue_wait,1,1,4,{k},{9.5 - 4 * k},2,{k}\n" for k in range(2))
    (output / "data_preprocess.csv").write_text(AICPU + rows)
    (output / "dataset_iterator_profiling_0.txt").write_text("0 0 1 5 1000\n0 1 1 1 1000\n0 2 1 6 1000\n1 8 1 3 1000\n")

    tables, issues = read(AscendText(), output.parent)

    columns = ("unit", "level", "name", "type", "count", "total_ns", "wait_ns", "min_ns", "max_ns")
    rows_of = tables["operator_totals"].filter(pl.col("unit").is_in(["DATASET", "AI_CPU"])).select(columns)
    assert sorted(rows_of.rows()) == [
        ("AI_CPU", "operator", "GetNext_dequeue_wait", "GetNext_dequeue_wait", 2, 15_000, 1_000, 5_500, 9_500),
        ("DATASET", "stage", "getNext", "Pipeline", 4, 10_000, None, None, None),
    ]
    assert tables["input_pipeline"].filter(pl.col("batch") == 1)["queue_size"].to_list() == [3]
    assert [issue for issue in issues if issue[0] != "note"] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dataset.csv", ""),
        ("dataset.csv", "Operation,Stage\nPipeline,getNext\n"),
        ("dataset.csv", "Operation,Stage,Occurrences,Avg. time (us)\nPipeline,getNext,-4,2.5\n"),
        ("dataset.csv", "Operation,Stage,Occurrences,Avg. time (us)\nPipeline,getNext,-4,-2.5\n"),
        ("data_preprocess.csv", AICPU[:20]),
        ("data_preprocess.csv", AICPU + "3,1,GetNext,1,1,4,1,late,2,1\n"),
    ],
)
def test_damaged_files_beside_cost_themselves(tmp_path: Path, name: str, text: str) -> None:
    output = write_kernels(rank_directory(tmp_path, NAME))
    (output / name).write_text(text)

    tables, issues = read(AscendText(), output.parent)

    assert tables["kernels"].height == 6
    assert ("error", name) in issues


@pytest.mark.parametrize(
    ("place", "operators", "curve"),
    [("2.10.0-profile_graph_sched", 134, 257), ("2.10.0-profile_pynative_cpu", 810, 0)],
)
def test_real_profiles_of_2_10_are_read_without_a_word(shared: Path, place: str, operators: int, curve: int) -> None:
    root = min((shared / "data/mindspore_profiles" / place).glob("*_ascend_ms"))

    tables, issues = read(AscendText(), root)

    assert issues == []
    ran = tables["operators"]
    assert (ran.height, ran["type"].null_count()) == (operators, 0)
    totals = tables["operator_totals"].filter(pl.col("level") == "type").select("name", "count", "total_ns")
    summed = ran.group_by(name="type").agg(again=pl.len(), sum=pl.sum("duration_ns"))
    both = totals.join(summed, on="name", how="full")
    listed = (root / "FRAMEWORK" / "cpu_op_type_info_0.csv").read_text().splitlines()
    assert totals.height == len(listed) - 1
    assert (both["count"] == both["again"]).all()
    assert ((both["total_ns"] - both["sum"]).abs() <= both["sum"] * 1e-4 + 100).all()
    assert tables.get("memory_curve", pl.DataFrame()).height == curve


def test_the_same_operators_come_out_with_and_without_the_trace(shared: Path, tmp_path: Path) -> None:
    root = min((shared / "data/mindspore_profiles/2.10.0-profile_graph_sched").glob("*_ascend_ms"))
    shutil.copytree(root / "FRAMEWORK", tmp_path / root.name / "FRAMEWORK")

    with_trace, _ = read(AscendText(), root)
    without, issues = read(AscendText(), tmp_path / root.name)

    same = ("name", "start_ns", "duration_ns", "type", "input_shapes")
    assert without["operators"].select(same).sort(same).equals(with_trace["operators"].select(same).sort(same))
    assert issues == []
