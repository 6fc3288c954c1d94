"""Operators on the CPU in classic profiles, alone and beside a device."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pynative_cpu
import pytest

from parts import golden, read_part, read_rank
from stepscope import open_run
from stepscope.sources.classic.cpu_operators import write_cpu_operators

TIMES, TIMELINE = "cpu_op_execute_timestamp_0.txt", "cpu_timeline_display_0.json"
RUNS = "Default/A-op1;HostCpuOps;1000000,0.5,0 3000000,0.5,0 9000000,0.5,0\n"
STEPS = [
    {"name": str(step), "ph": "X", "tid": 100000, "pid": 0, "ts": start_us, "dur": 1500.0}
    for step, start_us in ((1, 1000.0), (2, 3000.0))
]
OTHERS = [{"name": "A-op1", "ph": "X", "tid": "HostCpuOps0", "pid": 0, "ts": 1000.0, "dur": 500.0}]


@pytest.mark.parametrize(
    ("texts", "steps", "of_operators"),
    [
        (
            {TIMELINE: json.dumps(OTHERS + STEPS)},
            [(1, 1_000_000, 2_500_000, "stated"), (2, 3_000_000, 4_500_000, "stated")],
            [1, 2, None],
        ),
        ({}, [(0, 1_000_000, 9_500_000, "recording")], [0, 0, 0]),
    ],
)
def test_operators_of_a_cpu_have_the_steps_of_its_timeline_or_are_all_in_step_0(
    tmp_path: Path, texts: dict[str, str | bytes], steps: list[tuple[object, ...]], of_operators: list[int | None]
) -> None:
    tables, issues = read_part(write_cpu_operators, tmp_path, {TIMES: RUNS, **texts})

    assert tables["steps"].select("step", "start_ns", "end_ns", "window").rows() == steps
    found = zip(range(3), (1_000_000, 3_000_000, 9_000_000), of_operators, strict=True)
    assert tables["operators"].select("slice", "start_ns", "step").rows() == list(found)
    assert tables["slices"]["category"].to_list() == ["operator"] * 3
    assert issues == []


def test_bars_that_all_begin_where_the_first_does_are_the_steps_between_their_ends(tmp_path: Path) -> None:
    run = open_run(pynative_cpu.write(tmp_path), use_store=False)

    steps = run.table("steps").select("step", "start_ns", "end_ns").collect()
    ends = pynative_cpu.ends_ns()
    starts = [pynative_cpu.BASE_NS, *ends[:-1]]
    assert steps.rows() == list(zip(range(1, 21), starts, ends, strict=True))
    assert run.table("operators").group_by("step").len().sort("step").collect().rows() == [(n, 3) for n in range(1, 21)]


def test_every_answer_about_pynative_counts_each_step_and_operator_once(tmp_path: Path) -> None:
    run = open_run(pynative_cpu.write(tmp_path), use_store=False)

    trace = run.analyse("step_trace")
    assert trace["step"].to_list() == list(range(1, 21))
    assert (trace["step_ns"] / 1e6).to_list() == [94.0] + [2.0] * 19
    assert trace["backward_ns"].null_count() == 0
    assert run.analyse("model_flops").select("steps", "step_flops").row(0) == (20, 32.0)
    tree = run.analyse("flop_tree").filter(parent="Total").select("scope", "flops", "share_ratio")
    assert tree.rows() == [("Bprop", 320.0, 0.5), ("Default", 320.0, 0.5)]


def test_operators_on_a_cpu_get_the_operations_that_an_export_states(tmp_path: Path) -> None:
    header = "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms)"
    files: dict[str, str | bytes] = {
        "cpu_op_detail_info_0.csv": f"{header}\nHost,A,A-op1,Default/A-op1,2,1.5\n",
        "flops_0.txt": "full_kernel_name,MFLOPs(10^6 cube),GFLOPS(10^9 cube)\nDefault/A-op1,3.0,4.0\n",
    }

    tables, issues = read_part(write_cpu_operators, tmp_path, files)

    known = tables["operator_totals"].filter(level="operator").select("unit", "name", "cube_flops").rows()
    assert known == [("CPU", "A-op1", 3e6)]
    assert [issue.problem for issue in issues] == []


def test_operators_beside_a_device_go_by_another_clock_than_its_steps(tmp_path: Path) -> None:
    totals = "op_type,type_occurrences,total_compute_time\nA,3,1.5\n"
    files: dict[str, str | bytes] = {TIMES: RUNS, "cpu_op_type_info_0.csv": totals, "framework_raw_0.csv": ""}

    tables, _ = read_part(write_cpu_operators, tmp_path, files)

    assert tables["operators"]["step"].null_count() == 3
    assert tables["operator_totals"].select("unit", "name", "total_ns").rows() == [("HOST_CPU", "A", 1_500_000)]
    assert "steps" not in tables


@pytest.mark.parametrize("text", ["", "{}", json.dumps(OTHERS + STEPS)[:-70]])
def test_a_damaged_timeline_costs_steps_alone_and_is_told_once(tmp_path: Path, text: str) -> None:
    (tmp_path / TIMES).write_text(RUNS)
    (tmp_path / TIMELINE).write_text(text)

    tables, issues = read_rank(tmp_path)

    assert tables["operators"].height == 3
    assert tables["steps"]["step"].to_list() in ([0], [1])
    assert issues == [("error", TIMELINE)]


def test_a_profile_without_them_writes_nothing(tmp_path: Path) -> None:
    assert read_part(write_cpu_operators, tmp_path, {"flops_0.txt": ""}) == ({}, [])


@pytest.mark.parametrize(
    "place", ["mindspore/real_cpu_ms200_graph", "mindspore_profiles/2.0.0-classic_model_train_graph"]
)
def test_a_real_profile_of_2_0_gives_its_operators_and_steps_without_a_word(shared: Path, place: str) -> None:
    tables, issues = read_rank(shared / "data" / place / "profiler")

    assert issues == []
    assert tables["operators"].group_by("step").len().sort("step").rows() == [(step, 8) for step in range(1, 21)]
    assert tables["operators"]["input_shapes"].null_count() == 0
    totals = tables["operator_totals"].filter(pl.col("level") == "type").select("name", "count", "total_ns")
    ran = tables["operators"].group_by(name="type").agg(count=pl.len(), summed=pl.sum("duration_ns"))
    both = totals.join(ran, on="name", how="full")
    assert (both["count"] == both["count_right"]).all()
    assert ((both["total_ns"] - both["summed"]).abs() <= 20_000e-6 * both["summed"] + 100).all()


def test_operators_are_those_that_mindinsight_lists(shared: Path) -> None:
    run = "synthetic_hetero1"
    directory = shared / "data/mindspore" / run / "profiler"
    types, operators = (golden(shared, run, f"ops_cpu_{kind}_dev0") for kind in ("op_type", "op_info"))

    tables, _ = read_rank(directory)

    assert list(directory.glob("cpu_op_*"))
    of_types, of_operators = (
        tables["operator_totals"].filter(unit="HOST_CPU", level=level) for level in ("type", "operator")
    )
    assert (of_types.height, of_operators.height) == (types["size"], operators["size"])
    stated = {row[0]: row for row in types["object"]}
    for name, count, operators, total_ns in of_types.select("name", "count", "operators", "total_ns").rows():
        assert stated[name][1:3] == [count, operators]
        assert total_ns / 1e3 == pytest.approx(stated[name][3], rel=1e-6)
