"""Kernels of a classic profile: their unit, their clock, their steps, and what of them the analyses get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from device_files import CALL, CONV, MATMUL, Read, display_events, kernels, lines, trace_text, whole_profile, write

from stepscope import open_run

STARTS = [(start + at) * 10_000 for start in (1000, 1200, 1400) for at in (20, 60)]
"""Starts of the kernels in ns."""


US = "kernel_name,stream_id,start_time(us),duration(ms)"
PROFILE = whole_profile()


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    ("header", "unit", "noted"),
    [
        (US, 1e3, False),
        (US, 1e6, True),
        ("op_name, stream_id, start_time(ms), duration(ms)", 1e6, False),
    ],
)
def test_the_unit_of_starts_is_the_one_that_fits(
    tmp_path: Path, header: str, unit: float, noted: bool, traced: bool
) -> None:
    # kernels that follow one another closely tell the unit without steps
    rows = [(CONV, 3, (at + 10_000_000) / unit, 0.3) for at in range(0, 3_000_000, 300_500)]

    read = Read(write(tmp_path, timeline=lines(header, *rows), step_trace=trace_text() if traced else None))

    found = read.table("kernels")
    assert found["start_ns"].to_list() == [at + 10_000_000 for at in range(0, 3_000_000, 300_500)]
    assert set(found["duration_ns"]) == {300_000}
    assert bool(read.told("note")) == noted


def test_kernels_have_type_kind_stream_and_step(tmp_path: Path) -> None:
    rows = [
        (f"Default/{name}-op{at}", at, 10_000.0 + 500 * at, 0.1)
        for at, name in enumerate(("MatMul", "AllReduce", "MemcpyAsync", "Gather", "ReduceSum", "hcom_allGather_"))
    ]

    read = Read(write(tmp_path, timeline=lines(US, *rows), step_trace=trace_text()))

    assert read.table("kernels").select("name", "type", "kind", "stream", "step").rows() == [
        ("Default/MatMul-op0", "MatMul", "compute", 0, 1),
        ("Default/AllReduce-op1", "AllReduce", "communication", 1, 1),
        ("Default/MemcpyAsync-op2", "MemcpyAsync", "memory", 2, 1),
        ("Default/Gather-op3", "Gather", "compute", 3, 1),
        ("Default/ReduceSum-op4", "ReduceSum", "compute", 4, 2),
        ("Default/hcom_allGather_-op5", "hcom_allGather_", "communication", 5, 2),
    ]


def test_steps_without_kernels_were_not_idle_but_are_unknown(tmp_path: Path) -> None:
    read = Read(write(tmp_path, timeline=lines(US, *kernels(1e3)[:4]), step_trace=trace_text()))

    assert read.table("steps")["recorded"].to_list() == [True, True, False]


def test_without_the_list_of_kernels_the_timeline_has_them(tmp_path: Path) -> None:
    read = Read(write(tmp_path, timeline_display=PROFILE["timeline_display"], step_trace=trace_text()))

    rows = read.table("kernels")
    assert rows.filter(core="AI_CPU")["name"].to_list() == ["GetNext"] * 3
    assert rows.filter(kind="communication").is_empty()  # the step trace has these calls
    others = rows.filter(pl.col("core").is_null(), kind="compute")
    assert others.select("name", "type", "stream").rows() == [(CONV, "Conv2D", 3), (MATMUL, "MatMul", 4)] * 3
    assert others["start_ns"].to_list() == STARTS
    assert others["step"].to_list() == [1, 1, 2, 2, 3, 3]


def test_a_timeline_that_counts_from_its_first_event_is_put_on_the_clock_of_the_trace(tmp_path: Path) -> None:
    display = json.dumps(display_events(base_us=10_020.0))

    read = Read(write(tmp_path, timeline_display=display, step_trace=trace_text()))

    rows = read.table("kernels")
    assert rows.filter(pl.col("core").is_null())["start_ns"].to_list() == STARTS
    assert rows["step"].to_list() == sorted([1, 2, 3] * 3)
    assert read.told("note") == []


@pytest.mark.parametrize(("late_us", "noted"), [(0, False), (5_000, True)])
@pytest.mark.parametrize("name", [CALL, CALL.removeprefix("stream_11_0_")])
def test_a_call_that_timeline_and_trace_both_have_counts_once_with_the_times_of_the_trace(
    tmp_path: Path, name: str, late_us: int, *, noted: bool
) -> None:
    """As long as the trace says: 200 us of a step of 2 ms, wherever the timeline has it and by either name."""
    events = display_events()
    calls = [event for event in events if event["name"] == CALL]
    for number, event in enumerate(calls):
        event.update(name=name, ts=event["ts"] + number * late_us)
    write(tmp_path / "profiler", step_trace=trace_text(), timeline_display=json.dumps(events))

    run = open_run(tmp_path)

    assert run.analyse("breakdown")["communication_ns"].to_list() == [200_000] * 3
    told = run.issues.filter(pl.col("problem").str.contains("other times than in the step trace"))
    assert told.height == noted


def test_kernels_on_another_clock_are_left_out_and_told(tmp_path: Path) -> None:
    far = [(name, stream, start + 5e9, ms) for name, stream, start, ms in kernels(1e3)]
    events = [event for event in display_events(base_us=-7e9) if event.get("pid") != 10000]
    texts = {"timeline": lines(US, *far), "timeline_display": json.dumps(events)}

    read = Read(write(tmp_path, step_trace=trace_text(), **texts))

    assert read.table("kernels").is_empty()
    problem = "its clock differs from that of the step trace, so its kernels are left out"
    names = ("ascend_timeline_display_0.json", "output_timeline_data_0.txt")
    assert sorted(read.told("note")) == [(name, problem) for name in names]


def test_without_a_step_trace_the_timeline_has_the_steps(tmp_path: Path) -> None:
    read = Read(write(tmp_path, **(PROFILE | {"step_trace": None})))

    columns = ["step", "start_ns", "end_ns", "window", "forward_start_ns"]
    assert read.table("steps").select(columns).rows() == [
        (step, (8 + 2 * step) * 1_000_000, (10 + 2 * step) * 1_000_000, "stated", None) for step in (1, 2, 3)
    ]


def test_bars_of_one_beginning_are_steps_one_after_the_other_on_a_gpu_too(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"name": str(step), "ph": "X", "pid": 0, "tid": 100000, "ts": 1_000, "dur": 500 + 200 * step}
        for step in (3, 1, 2)
    ]
    events.append({"name": "gemm", "ph": "X", "pid": 0, "tid": "17", "ts": 1_750, "dur": 5})
    (tmp_path / "gpu_timeline_display_0.json").write_text(json.dumps(events))

    read = Read(tmp_path)

    assert read.table("steps").select("step", "start_ns", "end_ns").rows() == [
        (1, 1_000_000, 1_700_000),
        (2, 1_700_000, 1_900_000),
        (3, 1_900_000, 2_100_000),
    ]
    assert read.table("kernels")["step"].to_list() == [2]


def test_kernels_alone_are_one_recording(tmp_path: Path) -> None:
    read = Read(write(tmp_path, timeline=PROFILE["timeline"]))

    assert read.table("steps").select("step", "start_ns", "end_ns", "window").rows() == [
        (0, STARTS[0], STARTS[-1] + 200_000, "recording")
    ]
    assert set(read.table("kernels")["step"]) == {0}


def test_kernels_have_the_type_that_the_framework_gives_them(tmp_path: Path) -> None:
    framework = (
        f"task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type\n1,3,0,{CONV},,,Winograd\n"
    )

    read = Read(write(tmp_path, timeline=lines(US, *kernels(1e3)), step_trace=trace_text(), framework=framework))

    types = dict(read.table("kernels").select("name", "type").iter_rows())
    assert types == {CONV: "Winograd", MATMUL: "MatMul"}


def test_the_time_of_steps_is_split(tmp_path: Path) -> None:
    write(tmp_path / "profiler", **PROFILE)

    steps = open_run(tmp_path).analyse("breakdown")

    assert steps.select("computing_ns", "communication_ns", "free_ns").rows() == [(500_000, 200_000, 1_300_000)] * 3


@pytest.mark.parametrize("form", ["", "gpu_", "cpu_"])
def test_timelines_of_other_devices_and_generations(tmp_path: Path, form: str) -> None:
    write(tmp_path, step_trace=trace_text())
    (tmp_path / f"{form}timeline_display_0.json").write_text(json.dumps(display_events()))
    (tmp_path / f"{form}timeline_summary_0.json").write_text(PROFILE["timeline_summary"])

    read = Read(tmp_path)

    assert read.table("kernels").height == 9
    assert read.stated()["timeline_streams"] == 2


def test_kernels_of_a_gpu_have_their_own_name(tmp_path: Path) -> None:
    launched = {"type": "cuLaunchKernel", "op_full_name": CONV, "block_dim": "1", "grid_dim": "1"}
    events: list[dict[str, Any]] = [
        {"name": "gemm<float, 3>", "ph": "X", "pid": 0, "tid": "17", "ts": 10_100, "dur": 5, "args": launched},
        {"name": "copy", "ph": "X", "pid": 0, "tid": 17, "ts": 10_200, "dur": 5, "args": {"type": "cuMemcpyHtoDAsync"}},
        {"name": CONV, "ph": "X", "pid": 0, "tid": "Ops", "ts": 10_090, "dur": 50},
    ]
    write(tmp_path, step_trace=trace_text())
    (tmp_path / "gpu_timeline_display_0.json").write_text(json.dumps(events))

    rows = Read(tmp_path).table("kernels").select("name", "kind", "stream")

    assert rows.rows() == [("gemm<float, 3>", "compute", 17), ("copy", "memory", 17)]


@pytest.mark.parametrize(
    ("total", "expected", "noted"),
    [(1.5, 1.5e6, False), (1500.0, 1.5e6, False), (40.0, 40e3, True), (0.0001, 100.0, True)],
)
def test_the_unit_of_the_total_is_the_one_that_fits(tmp_path: Path, total: float, expected: float, noted: bool) -> None:
    summary = PROFILE["timeline_summary"].replace("1.5", str(total))

    read = Read(write(tmp_path, step_trace=trace_text(), timeline=PROFILE["timeline"], timeline_summary=summary))

    assert read.stated()["timeline_total_ns"] == pytest.approx(expected)
    assert bool(read.told("note")) == noted


def test_a_total_without_any_evidence_is_unknown(tmp_path: Path) -> None:
    read = Read(write(tmp_path, timeline_summary=PROFILE["timeline_summary"]))

    assert "timeline_total_ns" not in read.stated()
    assert read.stated()["timeline_executions"] == 6
    assert read.told("note") == [("ascend_timeline_summary_0.json", "total_time has no unit; it is left out")]
