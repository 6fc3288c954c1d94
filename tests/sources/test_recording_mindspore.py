"""Windows and dataset files of MindSpore in raw recordings."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from test_recording import read

from recordings import EPOCH_NS, MS, MindSporeRun, Raw, memory_curve

SHARED = Path(__file__).parents[3] / "shared" / "data" / "mindspore_profiles"


def test_operators_have_type_shapes_and_scope(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"framework": "mindspore", "mode": "graph"}).steps((1, 0, 1000), (2, 1000, 2000))
    runs = [
        MindSporeRun("Default/fc-Dense/MatMul-op0", 100, 50, ("[8, 3]", "[3]", "NoShape")),
        MindSporeRun("Gradients/Default/fc-Dense/MatMul-op0", 200, 50, ("[8, 8]", "[]")),
        MindSporeRun("ReLU", 300, 10, None),
        MindSporeRun("Default/fc-Dense/MatMul-op0", 1100, 50, ("[4, 3]", "[3]", "NoShape")),
    ]
    raw.mindspore(0, 0, 2000, runs)

    tables, facts = read(raw)

    rows = tables["operators"].select("name", "type", "input_shapes", "step", pl.col("start_ns") - EPOCH_NS)
    assert rows.rows() == [
        ("Default/fc-Dense/MatMul-op0", "MatMul", "[[8, 3], [3], null]", 1, 100),
        ("Gradients/Default/fc-Dense/MatMul-op0", "MatMul", "[[8, 8], []]", 1, 200),
        ("ReLU", "ReLU", None, 1, 300),
        ("Default/fc-Dense/MatMul-op0", "MatMul", "[[4, 3], [3], null]", 2, 1100),
    ]
    assert tables["steps"]["backward_end_ns"].to_list() == [EPOCH_NS + 250, None]
    assert (facts["framework"], facts["mode"], facts["process"]) == ("mindspore", "graph", 100)


def test_shapes_of_a_name_whose_launches_were_cut_are_given_only_if_all_agree(tmp_path: Path) -> None:
    raw = Raw(tmp_path)
    one, other = MindSporeRun("Default/Add-op0", 10, 1), MindSporeRun("Default/Mul-op0", 20, 1)
    changed = MindSporeRun("Default/Mul-op0", 30, 1, ("[9]",))
    raw.mindspore(0, 0, 100, [one, other, changed])
    file = raw.directory / "windows" / "000000" / "cpu_framework_0.txt"
    file.write_text(file.read_text() + one.launch + other.launch)

    tables, _ = read(raw)

    shapes = [("Add", "[[2, 3]]"), ("Mul", None), ("Mul", None)]
    assert tables["operators"].select("type", "input_shapes").rows() == shapes


def test_the_memory_curve_of_a_window_is_not_repeated_by_the_next(tmp_path: Path) -> None:
    raw = Raw(tmp_path)
    raw.mindspore(0, 0, 100, [MindSporeRun("Add", 1, 1)], memory_curve((10, 5), (20, 6)))
    raw.mindspore(1, 100, 200, [MindSporeRun("Add", 101, 1)], memory_curve((10, 5), (20, 6), (120, 7)))

    tables, _ = read(raw)

    curve = tables["memory_curve"].select(pl.col("time_ns") - EPOCH_NS, "allocated_bytes", "reserved_bytes")
    assert curve.rows() == [(10, 5, 1024), (20, 6, 1024), (120, 7, 1024)]


def test_operators_that_communicate_are_calls(tmp_path: Path) -> None:
    groups = [{"group": "hccl_world_group", "name": None, "members": [0, 1]}]
    raw = Raw(tmp_path, about={"groups": groups}).steps((1, 0, 1000))
    raw.mindspore(0, 0, 500, [MindSporeRun("Default/AllReduce-op1", 100, 50), MindSporeRun("Default/Add-op0", 200, 9)])
    detail = {"group": "hccl_world_group", "size_bytes": 24, "element_type": "float32", "group_size": 2, "async": False}
    raw.mark("collective", "all_reduce", 90, 160, 1, detail).mark("collective", "broadcast", 700, 800, 1, detail)

    tables, _ = read(raw)

    calls = tables["collectives"].select("operation", "group", "sequence", "size_bytes", "group_size", "duration_ns")
    assert calls.rows() == [
        ("all_reduce", "hccl_world_group", 0, 24, 2, 50),
        ("broadcast", "hccl_world_group", 1, 24, 2, 100),
    ]


def test_the_call_of_a_collective_in_pynative_and_its_execution_are_one(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 1000))
    runs = []
    for call in range(4):  # each runs after the call has returned, the first while the second is being made
        size = {"group": "world", "size_bytes": 10 * call, "group_size": 2}
        raw.mark("collective", "all_reduce", 100 * call, 100 * call + 40, 1, size)
        runs.append(MindSporeRun("Default/AllReduce-op1", 100 * call + 120, 50))
    raw.mindspore(0, 0, 800, runs)
    raw.mark("collective", "all_reduce", 900, 950, 1, {"group": "world", "size_bytes": 99})

    tables, _ = read(raw)

    calls = tables["collectives"].select(pl.col("start_ns") - EPOCH_NS, "duration_ns", "size_bytes", "sequence")
    assert calls.rows() == [
        *((100 * call + 120, 50, 10 * call, call) for call in range(4)),
        (900, 50, 99, 4),  # no window shows where it ran
    ]


def test_a_call_whose_execution_is_lost_takes_no_other_row_with_it(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 1000))
    for call in range(4):
        raw.mark("collective", "all_reduce", 100 * call, 100 * call + 40, 1, {"group": "world"})
    raw.mindspore(0, 0, 800, [MindSporeRun("Default/AllReduce-op1", 100 * call + 150, 20) for call in range(3)])

    tables, _ = read(raw)

    calls = tables["collectives"].select(pl.col("start_ns") - EPOCH_NS, "duration_ns", "group")
    ran = [(100 * call + 150, 20, "world") for call in range(3)]
    assert calls.rows() == sorted([*ran, (300, 40, "world")])


def test_damaged_executions_are_left_out_and_told(tmp_path: Path) -> None:
    raw = Raw(tmp_path).mindspore(0, 0, 500, [MindSporeRun("Default/Add-op0", 100, 50)])
    file = raw.directory / "windows" / "000000" / "cpu_op_execute_timestamp_0.txt"
    file.write_text(file.read_text() + "Default/Mul-op0;HostCpuOps;zzz,1,0 12\ngarbage\n")

    tables, _ = read(raw)

    assert tables["operators"]["name"].to_list() == ["Default/Add-op0"]
    assert tables["issues"].select("severity", "lost").rows() == [("warning", 3)]


def minddata(raw: Raw, doubled: bool) -> None:
    """Files of a start-stop span with three samples, 100, 120 and 140 ms after the clock's own zero at -1000 ms."""
    directory = raw.directory / "minddata" / "0"
    directory.mkdir(parents=True)
    times = [1100, 1120, 1140]
    host = {"user_utilization": [0, 50, 60], "sys_utilization": [0, 10, 20], "idle_utilization": [0, 40, 20]}
    if doubled:
        host = {key: [v for value in values for v in (value, 0)] for key, values in host.items()}
        host |= {key: host[key][:3] for key in ("user_utilization", "sys_utilization")}
    usage = {
        "cpu_processor_num": 4,
        "sampling_interval": 20,
        "time_stamp": times,
        "device_info": host,
        "process_info": {"user_utilization": [100, 200], "sys_utilization": [20, 40]},
        "op_info": [{"op_id": 1, "metrics": {"user_utilization": [0, 40, 80], "sys_utilization": [0, 0, 4]}}],
    }
    queue = {"output_queue": {"length": 8, "size": [0, 3, 8]}}
    operators = [
        {"op_id": 0, "op_type": "BatchOp", "num_workers": 2, "children": [1], "metrics": None},
        {"op_id": 1, "op_type": "MapOp", "num_workers": 3, "metrics": queue},
    ]
    (directory / "minddata_cpu_utilization_0.json").write_text(json.dumps(usage))
    (directory / "pipeline_profiling_0.json").write_text(json.dumps({"op_info": operators, "sampling_interval": 20}))
    lines = ["0 1 1 2 1110", "0 2 1 9 1110", "0 0 1 7 1110", "1 16 1 5 1110", "cut off"]
    (directory / "dataset_iterator_profiling_0.txt").write_text("\n".join(lines))


@pytest.mark.parametrize("doubled", [False, True])
def test_dataset_profiling_fills_the_pipeline_and_the_use_of_the_host(tmp_path: Path, doubled: bool) -> None:
    raw = Raw(tmp_path).steps((1, 100 * MS, 130 * MS))
    minddata(raw, doubled)

    tables, _ = read(raw)

    columns = ("operator", "parent", "batch", "step", "duration_ns", "get_ns", "push_ns", "queue_size", "workers")
    rows = tables["input_pipeline"].select(*columns, (pl.col("time_ns") - EPOCH_NS) // MS).rows()
    assert rows == [
        ("MapOp_1", "BatchOp_0", None, 1, None, None, None, 0, 3, 100),
        ("MapOp_1", "BatchOp_0", None, 1, None, None, None, 3, 3, 120),
        ("MapOp_1", "BatchOp_0", None, None, None, None, None, 8, 3, 140),
        ("dataset_iterator", None, 1, 1, 9 * MS, 7 * MS, 2 * MS, 5, None, 110),
    ]
    usage = tables["host_usage"].select("scope", "name", "user_ratio", "idle_ratio", "processors")
    host = [("host", None, 0.5, 0.4, 4), ("host", None, None if doubled else 0.6, 0.2, 4)]
    assert usage.rows() == [
        ("operator", "MapOp_1", 0.1, None, 4),
        ("operator", "MapOp_1", 0.2, None, 4),
        ("process", None, 0.25, None, 4),
        ("process", None, 0.5, None, 4),
        *host,
    ]
    assert tables["issues"]["severity"].to_list() == ["warning", "note"][: 1 + doubled]
    assert tables["issues"]["lost"].drop_nulls().to_list() == [1]


def test_without_a_related_clock_the_dataset_begins_with_its_span(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"epoch_shift_ns": None}).steps((1, 0, 130 * MS))
    minddata(raw, doubled=False)

    tables, _ = read(raw)

    assert tables["input_pipeline"]["time_ns"].min() == EPOCH_NS
    assert "note" in tables["issues"]["severity"].to_list()


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")
@pytest.mark.parametrize("name", ["2.10.0-profile_graph_sched", "2.10.0-profile_pynative_cpu"])
def test_real_windows(tmp_path: Path, name: str) -> None:
    raw = Raw(tmp_path)
    runs = rows = 0
    for number, directory in enumerate(sorted((SHARED / name).glob("*_ascend_ms/FRAMEWORK"))):
        files = {file.name: file.read_bytes() for file in directory.iterdir()}
        raw.window(number, 0, 1, "mindspore_cpu", files)
        runs += files["cpu_framework_0.txt"].count(b"\n")
        rows = max(rows, files.get("cpu_ms_memory_record_0.txt", b"\n").count(b"\n") - 1)

    tables, _ = read(raw)

    assert tables["operators"].height == runs
    assert tables["operators"]["type"].null_count() == 0
    named = tables["operators"].filter(pl.col("name").str.contains("-op"))
    assert named["input_shapes"].null_count() == 0
    assert tables.get("memory_curve", pl.DataFrame()).height == rows
