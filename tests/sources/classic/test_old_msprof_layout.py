"""Raw profiles as CANN up to 7.0 exported them: a file an iteration, with step trace, kernels and tasks of calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from parts import profile, read_part, read_rank
from stepscope.sources.classic.timeline import write_device

BOOT_US = 56_635_000_000.0
"""Times count from the start of the machine."""
LENGTHS_MS = (47.5, 15.0, 15.0)
"""From the first task of an iteration to its end."""
GAP_MS = 30.0
"""From the end of an iteration to the forward pass of the next one."""
FIRST_US = 6.0
"""From the first task of an iteration to its forward pass."""
STEPS_MS = (LENGTHS_MS[0], GAP_MS + LENGTHS_MS[1], GAP_MS + LENGTHS_MS[2])
MATMUL, CAST = "Default/network-Net/fc-Dense/MatMul-op7", "Default/network-Net/fc-Dense/Cast-op%d"
CALL = "Default/AllReduce-op534_0"
HARDWARE, HCCL, MARKS = 3, 1003611, 10036
Event = dict[str, Any]


def begins() -> list[float]:
    """When each iteration has its first task."""
    at, found = BOOT_US, []
    for length in LENGTHS_MS:
        found.append(at)
        at += (length + GAP_MS) * 1000
    return found


def name_of(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"name": kind, "pid": pid, "tid": tid, "args": {"name": name}, "ph": "M"}


def event(name: str, pid: int, tid: int, ts: float, dur: float, **args: Any) -> Event:
    return {"name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args, "ph": "X"}


def marks(thread: str, pid: int = MARKS, numbers: tuple[int, ...] = (1, 2, 3)) -> list[Event]:
    """The step trace."""
    events = [name_of("process_name", pid, 0, "Step Trace"), name_of("thread_name", pid, MARKS, thread)]
    for number in numbers:
        at, length = begins()[number - 1], LENGTHS_MS[number - 1] * 1000
        first, last, end = at + FIRST_US, at + 4000, at + length
        points = {"Iteration ID": number, "FP Start": first, "BP End": last}
        named = [
            ("Iteration", "Iteration Time", at, length, points | {"Iteration End": end, "Iteration Time(ns)": 1e3}),
            ("FP_BP Time", "FP_BP Time", first, last - first, points),
            ("Iteration Refresh", "Iteration Refresh", last, end - last, {"Iteration ID": number}),
        ]
        for name, category, start, duration, args in named:
            events.append(event(f"{name} {number}", pid, MARKS, start, duration, **args) | {"cat": category})
        events.append(event(f"Reduce_{number}_0", pid, MARKS, at + 4100, length - 5000) | {"cat": "Reduce"})
    return events


def hardware(number: int) -> list[Event]:
    """Kernels, and the tasks of the call as streams ran them."""
    at = begins()[number - 1] + 2 * FIRST_US
    task = {"Stream Id": 2, "Task Id": 4, "Batch Id": 0, "Total Cycle": "N/A"}
    core = {**task, "Task Type": "AI_CORE"}
    copies = {**task, "Task Type": "MEMCPY_ASYNC", "Stream Id": 12}
    return [
        name_of("process_name", HARDWARE, 0, "Ascend Hardware"),
        event(MATMUL, HARDWARE, 2, at, 100.0, **core),
        *(event(CAST % k, HARDWARE, 2, at + 200 * k, 10.0, **core) for k in range(1, 4)),
        event("MEMCPY_ASYNC", HARDWARE, 12, at + 5000, 500.0, **copies),
        event("MEMCPY_ASYNC", HARDWARE, 12, at + 7000, 90.0, **copies),
        event("MEMCPY_ASYNC", HARDWARE, 12, at + 14000, 3.0, **copies),
        event("MEMCPY_ASYNC", HARDWARE, 9, at + 1500, 3.0, **{**copies, "Stream Id": 9}),
        event("NOTIFY_WAIT", HARDWARE, 12, at + 4500, 400.0, **{**copies, "Task Type": "NOTIFY_WAIT"}),
    ]


def tasks(number: int, source: int = 0, others: tuple[int, int] = (1, 4), rate: float = 1.0) -> list[Event]:
    """The call with its tasks: 6.65 MB to one neighbour in 500 us over HCCS, 7 MB to another in 280 us over PCIe."""
    at = begins()[number - 1] + 2 * FIRST_US

    def task(name: str, stream: int, start: float, length: float, to: int, size: int, link: str) -> Event:
        args = {"src rank": source, "dst rank": to, "size(Byte)": size, "link type": link, "stream id": stream}
        way = "SDMA" if size else "LOCAL"
        return event(name, HCCL, stream - 11, start, length, **args, **{"transport type": way, "task type": name})

    return [
        name_of("process_name", HCCL, 0, "HCCL"),
        *(name_of("thread_name", HCCL, plane, f"Plane {plane}") for plane in (1, 2)),
        name_of("thread_name", HCCL, 70000, "Communication Kernel"),
        {k: v for k, v in event(CALL, HCCL, 70000, at + 4400, 9000.0).items() if k != "args"},
        task("Notify_Wait", 12, at + 4500, 400.0, 4294967295, 0, "INVALID_TYPE"),
        task("Memcpy", 12, at + 5000, 500.0 / rate, others[0], 6_650_000, "HCCS"),
        task("Reduce_Inline", 13, at + 5000, 280.0, others[1], 7_000_000, "PCIE"),
    ]


def export(device: int, rank: int, model: int = 2, whole: bool = False, **changed: str) -> dict[str, str | bytes]:
    """Files of a device by name: one of each kind an iteration, or `msprof` with all of it."""
    folder = f"PROF_00000{device}_20230818142704322_ABCDEF/device_{device}"
    files: dict[str, list[Event]] = {}
    other = (rank + 1) % 2
    for number in (1, 2, 3):
        of_call = tasks(number, rank, (other, rank + 4))
        if whole:
            parts = hardware(number) + of_call + marks(f"Step Trace(Model ID:{model})", HARDWARE, (number,))
            files[f"msprof_{device}_{model}_{number}"] = parts
        else:
            files[f"task_time_{device}_{model}_{number}"] = hardware(number)
            files[f"hccl_{device}_{model}_{number}"] = of_call
    if not whole:
        files[f"step_trace_{device}_{model}_3"] = marks(f"Model ID:{model}")
    texts: dict[str, str | bytes] = {f"{folder}/timeline/{name}.json": json.dumps(e) for name, e in files.items()}
    texts[f"{folder}/info.json.{device}"] = json.dumps(
        {"rank_id": rank, "DeviceInfo": [{"ai_core_num": 32, "aic_frequency": "1000"}]}
    )
    return texts | {f"{folder}/timeline/{name}.json": text for name, text in changed.items()}


def read(directory: Path, files: dict[str, str | bytes]) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables and issues of the only rank."""
    profile(directory, files)
    return read_rank(directory)


@pytest.mark.parametrize("whole", [False, True])
def test_steps_have_the_points_and_ends_of_the_step_trace(tmp_path: Path, whole: bool) -> None:
    tables, issues = read(tmp_path, export(0, 0, whole=whole))

    steps = tables["steps"]
    lengths = steps.select("step", "window", (pl.col("window_end_ns") - pl.col("window_start_ns")) / 1e6).rows()
    assert lengths == [(number, "stated", length) for number, length in enumerate(STEPS_MS, 1)]
    points = (pl.col(name) - int(BOOT_US) * 1000 for name in ("forward_start_ns", "backward_end_ns"))
    assert steps.select(points).row(0) == (6_000, 4_000_000)
    assert steps["graph"].to_list() == [2, 2, 2]
    assert issues == []


def test_without_a_step_trace_an_iteration_lasts_as_long_as_its_work(tmp_path: Path) -> None:
    files = {name: text for name, text in export(0, 0).items() if "step_trace" not in name}

    tables, issues = read(tmp_path, files)

    assert tables["steps"]["window"].to_list() == ["device"] * 3
    assert tables["steps"]["forward_start_ns"].null_count() == 3
    assert issues == []


def test_operators_have_types_and_copies_of_a_call_are_part_of_it(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, export(0, 0))

    kernels = tables["kernels"]
    compute = kernels.filter(kind="compute")
    assert sorted(compute["type"].unique()) == ["Cast", "MatMul"]
    assert sorted(compute["step"].unique()) == [1, 2, 3]
    copies = kernels.filter(kind="memory")
    assert copies.select("stream", "duration_ns").rows() == [(9, 3_000), (12, 3_000)] * 3  # the last is behind the call
    assert kernels["device"].unique().to_list() == [0]
    calls = tables["collectives"].select("operation", "group", "sequence", "duration_ns", "step").rows()
    assert calls == [("all_reduce", "Default/AllReduce-op534", n - 1, 9_000_000, n) for n in (1, 2, 3)]


@pytest.mark.parametrize("whole", [False, True])
def test_links_have_both_ends_bytes_and_kind(tmp_path: Path, whole: bool) -> None:
    tables, issues = read(tmp_path, export(0, 0, whole=whole))

    links = tables["links"].filter(step=2)
    columns = ["source", "destination", "transport", "size_bytes", "duration_ns"]
    totals = links.filter(pl.col("name").is_null()).select(columns).rows()
    assert totals == [(0, 1, "HCCS", 6_650_000, 500_000), (0, 4, "PCIE", 7_000_000, 280_000)]
    assert links.drop_nulls("name").select("operation", "name", *columns).row(0) == ("all_reduce", CALL, *totals[0])
    assert issues == []


def test_a_transfer_over_rdma_is_over_when_the_wait_behind_it_is(tmp_path: Path) -> None:
    at = begins()[0] + 5000
    rows = tasks(1)[:5]
    for name, size, start, length in (
        *(("RDMASend", 4_000_000, at, 2.0), ("RDMASend", 4, at + 2, 1.0), ("Notify_Wait", 0, at + 3, 397.0)),
        ("RDMASend", 4_000_000, at + 900, 2.0),
    ):
        args = {"src rank": 0, "dst rank": 8, "size(Byte)": size, "link type": "RoCE", "transport type": "RDMA"}
        rows.append(event(name, HCCL, 1, start, length, **args))

    tables, _ = read(tmp_path, export(0, 0, hccl_0_2_1=json.dumps(rows)))

    links = tables["links"].filter(pl.col("name").is_null(), step=1)
    assert links.select("destination", "size_bytes", "duration_ns", "wait_ns").rows() == [
        (8, 4_000_004, 400_000, 397_000)
    ]


@pytest.mark.parametrize("text", ["", "[{", "{}", "[]"])
def test_a_damaged_file_costs_what_it_has(tmp_path: Path, text: str) -> None:
    tables, issues = read(tmp_path, export(0, 0, hccl_0_2_2=text))

    assert tables["links"]["step"].unique().sort().to_list() == [1, 3]
    assert tables["steps"]["step"].to_list() == [1, 2, 3]
    assert {name for _, name in issues} <= {"hccl_0_2_2.json"}


@pytest.mark.parametrize("text", ["", "[{", "kernel,time\n"])
def test_a_damaged_step_trace_leaves_the_spans_of_iterations(tmp_path: Path, text: str) -> None:
    tables, issues = read(tmp_path, export(0, 0, step_trace_0_2_3=text))

    assert tables["steps"].select("step", "window").rows() == [(number, "device") for number in (1, 2, 3)]
    assert [name for _, name in issues] == ["step_trace_0_2_3.json"]


def test_ends_that_are_no_ranks_of_the_job_are_told(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, export(5, 5, whole=False) | {})
    moved, told = read(tmp_path / "other", export(3, 6, hccl_3_2_1=json.dumps(tasks(1, 0, (1, 2)))))

    assert tables["links"]["source"].unique().to_list() == [5]
    assert issues == []
    assert "links" not in moved or moved["links"]["source"].unique().to_list() != [0]
    assert [severity for severity, _ in told] == ["warning"]


def test_the_newer_layout_has_steps_without_its_csv_file(tmp_path: Path) -> None:
    name = "PROF_000001_20240501100000000_ABC/mindstudio_profiler_output/step_trace_20240501100050.json"

    tables, issues = read_part(write_device, tmp_path, {name: json.dumps(marks("Model ID:2"))})

    assert tables["steps"]["step"].to_list() == [1, 2, 3]
    assert tables["collectives"]["step"].to_list() == [1, 2, 3]
    assert issues == []


def test_questions_are_answered(tmp_path: Path) -> None:
    profile(tmp_path, export(0, 0) | export(1, 1))

    run = stepscope.open_run(tmp_path)

    trace = run.analyse("step_trace").sort("rank", "step")
    assert trace.select(pl.col("step_ns") / 1e6).to_series().to_list() == [*STEPS_MS] * 2
    assert trace["forward_backward_ns"].null_count() == 0
    types = run.analyse("operator_types").filter(rank=0, unit="AI_CORE")
    assert types.select("type", "count").rows()[:3] == [("AllReduce", 3), ("MatMul", 3), ("Cast", 9)]


PROF = "PROF_000000_20230818142704322_ABCDEF"
LIST_OF_KERNELS = f"{PROF}/mindstudio_profiler_output/op_summary_20230818150000.csv"
SUMMARY = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Block Dim,Input Shapes"


def whole_trace(device: int, rank: int, time: str = "20230818150000", parts: int = 1) -> dict[str, str | bytes]:
    """Files of a device as later versions export them: one trace of all, a step trace, and a list of kernels."""
    profile_of, output = f"PROF_00000{device}_20230818142704322_ABCDEF", "mindstudio_profiler_output"
    works = [hardware(number) + tasks(number, rank, ((rank + 1) % 2, rank + 4)) for number in (1, 2, 3)]
    names = [f"msprof_{time}"] if parts == 1 else [f"msprof_slice_{part}_{time}" for part in range(parts)]
    files = {name: [event for work in works[at::parts] for event in work] for at, name in enumerate(names)}
    texts: dict[str, str | bytes] = {f"{profile_of}/{output}/{name}.json": json.dumps(e) for name, e in files.items()}
    texts[f"{profile_of}/{output}/step_trace_{time}.json"] = json.dumps(marks("Model ID:2"))
    texts[f"{profile_of}/device_{device}/info.json.{device}"] = json.dumps({"rank_id": rank})
    return texts


@pytest.mark.parametrize("parts", [1, 3])
def test_a_raw_profile_alone_with_one_trace_has_ranks_and_steps(tmp_path: Path, parts: int) -> None:
    profile(tmp_path, whole_trace(0, 8, parts=parts) | whole_trace(1, 9, parts=parts))
    profile(tmp_path / "old", export(0, 0) | export(1, 1))

    run, old = stepscope.open_run(tmp_path / PROF), stepscope.open_run(tmp_path / "old")
    both = [run for run in stepscope.open_runs(tmp_path) if run.ranks[0].path.parent == tmp_path]

    assert [rank.rank for rank in run.ranks] == [8]
    assert [[rank.rank for rank in one.ranks] for one in both] == [[8, 9]]
    columns = ["step", "step_ns", "interval_ns", "forward_backward_ns", "tail_ns"]
    asked, expected = (one.analyse("step_trace").select(columns).head(3).rows() for one in (run, old))
    assert asked == expected
    types, expected_types = (
        one.analyse("operator_types").filter(**only, unit="AI_CORE").select("type", "count", "total_ns").rows()
        for one, only in ((run, {}), (old, {"rank": 0}))
    )
    assert types == expected_types
    assert run.table("links").collect().height == old.table("links").filter(rank=0).collect().height


def test_of_several_exports_of_a_raw_profile_the_newest_counts(tmp_path: Path) -> None:
    profile(tmp_path, whole_trace(0, 0) | whole_trace(0, 0, time="20230819150000"))

    run = stepscope.open_run(tmp_path)

    assert run.analyse("operator_types").filter(type="MatMul")["count"].to_list() == [3]
    assert run.analyse("step_trace").height == 3


def test_a_list_of_kernels_adds_what_the_trace_lacks(tmp_path: Path) -> None:
    at = begins()[0] + 2 * FIRST_US
    row = f'0,{MATMUL},MatMulV2,AI_CORE,{at},100.0,20,"""2,3;3,4"""'
    profile(tmp_path, whole_trace(0, 0) | {LIST_OF_KERNELS: f"{SUMMARY}\n{row}\n"})

    kernels = stepscope.open_run(tmp_path).table("kernels").filter(name=MATMUL).collect().sort("start_ns")

    assert kernels.select("type", "block_dim", "input_shapes").row(0) == ("MatMulV2", 20, "2,3;3,4")
    assert kernels.height == 3


@pytest.mark.parametrize("text", ["", "[{", "{}", "kernel,time\n"])
def test_a_damaged_trace_of_all_iterations_costs_no_other_rank(tmp_path: Path, text: str) -> None:
    damaged = {name: text if "msprof_2" in name else content for name, content in whole_trace(0, 0).items()}
    profile(tmp_path, damaged | whole_trace(1, 1))

    (run,) = stepscope.open_runs(tmp_path)

    assert run.analyse("step_trace").filter(rank=1).height == 3
    told = run.issues.filter(pl.col("severity") != "note")
    assert any(file.endswith("msprof_20230818150000.json") or "PROF_000000" in file for file in told["file"])


@pytest.mark.parametrize("text", ["", "kernel,time\n1,2\n", "Op Name\n"])
def test_a_damaged_list_of_kernels_costs_what_it_adds(tmp_path: Path, text: str) -> None:
    profile(tmp_path, whole_trace(0, 0) | {LIST_OF_KERNELS: text})

    run = stepscope.open_run(tmp_path)

    assert run.analyse("operator_types").filter(type="MatMul")["count"].to_list() == [3]
    assert [file for file in run.issues.filter(severity="error")["file"] if file.endswith(".csv")] != []
