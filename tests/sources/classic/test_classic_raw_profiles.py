"""What the device's own profiler left in `PROF_*`, beside a classic profile or alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from every_kind import RAW, STEPS_HEADER, T0_US, iteration

import stepscope
from parts import profile, read_part, read_rank
from stepscope.sources.classic.figures import write_device_peak
from stepscope.sources.classic.reading import of_kind
from stepscope.sources.classic.timeline import write_device
from stepscope.sources.discover import discover

STEPS = f"{RAW}/mindstudio_profiler_output/step_trace_20240501100050.csv"
INFO = f"{RAW}/device_3/info.json.3"
STEP_TRACE = "step_num,start_point,end_point,total,fp_point,bp_point\n7,100,200,100,110,150\n"
AT_US = (pl.col("start_ns") - T0_US * 1000) // 1000
Issues = list[tuple[str, str]]


def steps_of(tables: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    """Step, start, end, graph (times in us since the first start)."""
    times = ((pl.col(name) - T0_US * 1000) / 1000 for name in ("start_ns", "end_ns"))
    return tables["steps"].select("step", *times, "graph").rows() if "steps" in tables else []


def test_steps_go_from_the_end_of_the_one_before_to_their_own(tmp_path: Path) -> None:
    text = f"{STEPS_HEADER}\n" + iteration(1, 0) + iteration(2, 100)

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert steps_of(tables) == [(1, 0.0, 100.0, 1), (2, 100.0, 200.0, 1)]
    first = tables["steps"].row(0, named=True)
    assert first["forward_start_ns"] == (T0_US + 10) * 1000 + 250
    assert first["backward_end_ns"] == (T0_US + 70) * 1000
    assert first["window"] == "stated"
    assert issues == []


def test_graphs_that_count_for_themselves_are_numbered_by_their_start(tmp_path: Path) -> None:
    text = (
        f"{STEPS_HEADER}\n"
        + iteration(1, 0)
        + iteration(2, 200)
        + iteration(1, 100, model=11)
        + iteration(2, 300, model=11)
    )

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert [(step, graph) for step, _, _, graph in steps_of(tables)] == [(1, 1), (2, 11), (3, 1), (4, 11)]
    assert issues == []


def test_without_points_of_forward_and_backward_the_time_of_the_iteration_counts(tmp_path: Path) -> None:
    text = f"{STEPS_HEADER}\n1,N/A,N/A,{T0_US + 100},100,N/A,N/A,N/A,1\n2,0,0,{T0_US + 200},100,0,0,0,1\n"

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert steps_of(tables) == [(1, 0.0, 100.0, 1), (2, 100.0, 200.0, 1)]
    assert tables["steps"]["forward_start_ns"].null_count() == 2
    assert issues == []


def test_communication_stands_in_pairs_of_columns_of_one_name(tmp_path: Path) -> None:
    pairs = ",Reduce Start(us),Reduce Duration(us),Reduce Start(us),Reduce Duration(us)\n"
    reduces = f",{T0_US + 40}.5,7.25,{T0_US + 60},2"
    text = STEPS_HEADER + pairs + iteration(1, 0, reduce=reduces) + iteration(2, 100, reduce=",N/A,N/A,0,0")

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    calls = tables["collectives"].select("name", "step", pl.col("start_ns") - T0_US * 1000, "duration_ns", "sequence")
    assert calls.rows() == [("Reduce_0", 1, 40_500, 7_250, 0), ("Reduce_1", 1, 60_000, 2_000, 0)]
    assert issues == []


@pytest.mark.parametrize("call", [f"{T0_US + 40},-0.5", "18446744073709552.0,5", f"{T0_US + 40},1.-5"])
def test_communication_of_an_impossible_time_is_left_out(tmp_path: Path, call: str) -> None:
    text = f"{STEPS_HEADER},Reduce Start(us),Reduce Duration(us)\n" + iteration(1, 0, reduce=f",{call}")

    tables, _ = read_part(write_device, tmp_path, {STEPS: text})

    assert steps_of(tables)
    assert "collectives" not in tables


def test_the_step_trace_of_mindspore_counts_where_it_is_there(tmp_path: Path) -> None:
    raw_steps = f"{STEPS_HEADER}\n" + iteration(1, 0)

    tables, _ = read_part(write_device, tmp_path, {STEPS: raw_steps, "step_trace_raw_0_detail_time.csv": STEP_TRACE})

    assert tables["steps"]["step"].to_list() == [7]


@pytest.mark.parametrize(
    ("text", "steps", "severity"),
    [
        ("", [], "error"),
        (f"{STEPS_HEADER}\n", [], "warning"),
        ("Op Name,Task Type\na,b\n", [], "error"),
        (f"{STEPS_HEADER}\n" + iteration(1, 0) + iteration(2, 100)[:60], [1], "error"),
        (f"{STEPS_HEADER}\n" + iteration(1, 0) + iteration(2, 100).replace("100,60", "x,60"), [1, 2], "error"),
        (f"{STEPS_HEADER}\n" + iteration(1, 0) + "2,N/A,N/A,soon,100,1,1,1,1\n", [1], "error"),
        (f"{STEPS_HEADER}\n" + iteration(1, 0) + f"2,N/A,N/A,{T0_US + 99},N/A,1,1,1,1\n", [1], "error"),
    ],
)
def test_damage_costs_steps_and_is_told(tmp_path: Path, text: str, steps: list[int], severity: str) -> None:
    tables, told = read_part(write_device, tmp_path, {STEPS: text})

    assert [step for step, *_ in steps_of(tables)] == steps
    assert told == [(severity, Path(STEPS).name)]


READ_PEAK = of_kind("device_info", write_device_peak)


def cores_of(device: int, cores: int) -> dict[str, Any]:
    """What `info.json` has of a device at 1 GHz."""
    return {"id": device, "ai_core_num": cores, "aic_frequency": "1000"}


def test_the_peak_is_cores_times_frequency_times_operations_a_cycle(tmp_path: Path) -> None:
    tables, issues = read_part(READ_PEAK, tmp_path, {INFO: json.dumps({"DeviceInfo": [cores_of(3, 32)]})})

    assert tables["rank_figures"].select("name", "value").rows() == [("device_peak_flops_per_s", 32 * 1000e6 * 8192)]
    assert issues == []


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("", "error"),
        ('{"DeviceInfo": [{"ai_core', "error"),
        ('{"DeviceInfo": [{"ai_core_num": "many", "aic_frequency": null}, 4]}', "note"),
        ('{"DeviceInfo": {}}', "note"),
    ],
)
def test_without_cores_and_frequency_there_is_no_peak(tmp_path: Path, text: str, severity: str) -> None:
    assert read_part(READ_PEAK, tmp_path, {INFO: text}) == ({}, [(severity, "info.json.3")])


def raw(stamp: str, rank: object, device: int = 0, cores: int = 32, number: int = 1) -> dict[str, str | bytes]:
    """A raw profile of one device."""
    name = f"PROF_00000{number}_{stamp}_ABC/device_{device}/info.json.{device}"
    stated = {} if rank is None else {"rank_id": rank}
    return {name: json.dumps({**stated, "DeviceInfo": [cores_of(device, cores)]})}


def peaks(run: stepscope.Run) -> list[tuple[int, float]]:
    """Rank and peak of its device, in those of a core at 1 GHz."""
    rows = run.table("rank_figures").filter(pl.col("name") == "device_peak_flops_per_s").collect().sort("rank")
    return rows.select("rank", pl.col("value") / 8192e9).rows()


def test_each_rank_has_its_newest_raw_profile_whatever_the_number_of_its_device(tmp_path: Path) -> None:
    directory = tmp_path / "profiler"
    profile(directory, {f"flops_summary_{rank}.json": '{"cube_FLOPs": 1.0}' for rank in (2, 10)})
    profile(directory, raw("20240501100000000", 10, 2, 1) | raw("20240601100000000", 10, 2, 2))
    profile(directory, raw("20240501110000000", -1, 2, 3))

    run = stepscope.open_run(directory)

    assert peaks(run) == [(2, 3.0), (10, 2.0)]
    devices = run.table("ranks").collect().sort("rank")
    assert devices.select("rank", "device").rows() == [(2, 2), (10, 2)]


def events(*ranges: tuple[str, str, float, float], hardware: str = "Task Scheduler") -> str:
    """Trace events: process (`d` the device, `c` communication), name, start and length in us."""
    meta: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in ((30, hardware), (40, "HCCL"))
    ]
    meta += [
        {"ph": "M", "name": "thread_name", "pid": 40, "tid": 0, "args": {"name": "Communication"}},
        {"ph": "M", "name": "thread_name", "pid": 40, "tid": 1, "args": {"name": "Plane 0"}},
    ]
    for process, name, start, length in ranges:
        known = {"Task Type": "AI_CORE", "Stream Id": 5, "Model Id": 1} if process == "d" else {}
        at = f"{T0_US + start:.3f}"
        pid, thread = (30, 5) if process == "d" else (40, 0)
        meta.append({"ph": "X", "name": name, "pid": pid, "tid": thread, "ts": at, "dur": length, "args": known})
    return json.dumps(meta)


OLD = f"{RAW}/device_0/timeline"
KERNEL, CALL = "Default/fc/MatMul-op1", "hcom_allReduce__653_0_1"


def old_profile(directory: Path, texts: dict[str, str] | None = None) -> Path:
    """A raw profile of two iterations as up to CANN 7.0."""
    files: dict[str, str | bytes] = {
        f"{RAW}/device_0/info.json.0": json.dumps({"rank_id": 4, "DeviceInfo": [cores_of(0, 2)]}),
        f"{OLD}/task_time_0_1_1.json": events(("d", KERNEL, 0, 40)),
        f"{OLD}/hccl_0_1_1.json": events(("c", CALL, 50, 20)),
        f"{OLD}/msprof_0_1_10.json": events(("d", KERNEL, 1000, 40), ("c", CALL, 1050, 20), hardware="Ascend Hardware"),
        f"{OLD}/task_time_0_1_10.json": events(("d", KERNEL, 1000, 40)),
        f"{OLD}/msprof_0_1_2.json": events(("d", KERNEL, 500, 40), ("c", CALL, 550, 20)),
        **(texts or {}),
    }
    profile(directory, files)
    return directory


def read_old(directory: Path, texts: dict[str, str] | None = None) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables and issues of such a profile, of rank 4."""
    old_profile(directory, texts)
    assert [item.label for item in discover([directory]).inputs] == ["rank 4"]
    return read_rank(directory)


def test_exports_by_iteration_become_kernels_calls_and_steps_each_once(tmp_path: Path) -> None:
    tables, issues = read_old(tmp_path)

    kernels = tables["kernels"].filter(pl.col("kind") == "compute").select("name", AT_US, "step", "core", "stream")
    assert kernels.rows() == [(KERNEL, start, step, "AI_CORE", 5) for start, step in ((0, 1), (500, 2), (1000, 10))]
    calls = tables["collectives"].select("operation", AT_US, "duration_ns", "step", "on_device")
    assert calls.rows() == [
        ("all_reduce", start, 20_000, step, True) for start, step in ((50, 1), (550, 2), (1050, 10))
    ]
    assert tables["steps"].select("step", AT_US).rows() == [(1, 0), (2, 500), (10, 1000)]
    assert "device_peak_flops_per_s" in tables["rank_figures"]["name"].to_list()
    assert issues == []


def test_a_step_trace_beside_iterations_tells_the_steps(tmp_path: Path) -> None:
    text = f"{STEPS_HEADER}\n" + "".join(iteration(number, start) for number, start in ((1, -10), (2, 490), (10, 990)))

    twice = {f"{RAW}/device_0/summary/step_trace_0_1_{number}.csv": text for number in (1, 2)}
    tables, issues = read_old(tmp_path, twice)

    assert tables["steps"]["start_ns"].to_list() == [(T0_US + start) * 1000 for start in (-10, 490, 990)]
    assert issues == []


def test_a_raw_profile_alone_is_of_no_framework(tmp_path: Path) -> None:
    run = stepscope.open_run(old_profile(tmp_path))

    known = run.table("ranks").collect().row(0, named=True)
    assert (known["rank"], known["device"], known["device_kind"], known["framework"]) == (4, 0, "npu", None)


def test_what_mindspore_made_of_the_same_work_counts_where_it_is_there(tmp_path: Path) -> None:
    tables, _ = read_old(tmp_path, {"step_trace_raw_4_detail_time.csv": STEP_TRACE})

    assert tables["steps"]["step"].to_list() == [7]
    assert not {"kernels", "collectives"} & tables.keys()


@pytest.mark.parametrize("text", ["", "[{", "{}", "kernel,time\n"])
def test_a_damaged_iteration_costs_itself(tmp_path: Path, text: str) -> None:
    tables, issues = read_old(tmp_path, {f"{OLD}/msprof_0_1_2.json": text})

    assert tables["kernels"].filter(pl.col("kind") == "compute")["step"].to_list() == [1, 10]
    assert [name for _, name in issues] == ["msprof_0_1_2.json"]


def test_iterations_of_models_that_count_for_themselves_are_numbered_by_their_start(tmp_path: Path) -> None:
    tables, issues = read_old(tmp_path, {f"{OLD}/msprof_0_7_1.json": events(("d", KERNEL, 200, 40))})

    assert tables["steps"].select("step", AT_US).rows() == [(1, 0), (2, 200), (3, 500), (4, 1000)]
    assert issues == []


def test_an_iteration_is_as_long_as_the_work_of_its_device(tmp_path: Path) -> None:
    meta = {"ph": "M", "name": "process_name", "pid": 50, "tid": 0, "args": {"name": "CANN"}}
    launch = {"ph": "X", "name": "launch", "pid": 50, "tid": 0, "ts": f"{T0_US - 90}.000", "dur": 5, "args": {}}
    text = json.dumps([*json.loads(events(("d", KERNEL, 0, 40))), meta, launch])

    tables, _ = read_old(tmp_path, {f"{OLD}/msprof_0_1_1.json": text})

    assert "launch" in tables["slices"]["name"].to_list()
    assert tables["steps"]["start_ns"][0] == T0_US * 1000


def test_a_step_trace_that_lost_steps_does_not_tell_them(tmp_path: Path) -> None:
    name = f"{RAW}/device_0/summary/step_trace_0_1_1.csv"
    text = f"{STEPS_HEADER}\n" + iteration(1, -10) + iteration(2, 490)

    tables, issues = read_old(tmp_path, {name: text[:-20]})

    assert tables["steps"].select("step", AT_US).rows() == [(1, 0), (2, 500), (10, 1000)]
    assert issues == [("error", Path(name).name)]


def test_the_newest_raw_profile_is_told_by_its_time_not_by_its_number(tmp_path: Path) -> None:
    raws = raw("20240501100000000", 0, 0, 1, number=2) | raw("20240601100000000", 0, 0, 5, number=1)
    profile(tmp_path, raws | {"flops_summary_0.json": '{"cube_FLOPs": 1.0}'})

    assert peaks(stepscope.open_run(tmp_path)) == [(0, 5.0)]


def test_steps_of_several_files_count_once_and_calls_after_the_last_step_are_of_none(tmp_path: Path) -> None:
    header = f"{STEPS_HEADER},Reduce Start(us),Reduce Duration(us)\n"
    first = header + iteration(1, 0, reduce=f",{T0_US + 40},7") + iteration(2, 100, reduce=f",{T0_US + 250},7")

    tables, issues = read_part(write_device, tmp_path, {STEPS: first, STEPS.replace("100050", "100051"): first})

    assert [step for step, *_ in steps_of(tables)] == [1, 2]
    assert tables["collectives"]["step"].to_list() == [1]
    assert issues == []


def test_several_raw_profiles_in_a_folder_are_one_job(tmp_path: Path) -> None:
    for rank in (0, 1):
        folder = tmp_path / f"PROF_00000{rank}_2024050110000000{rank}_ABC" / f"device_{rank}"
        text = events(("d", KERNEL, 0, 40))
        info = json.dumps({"rank_id": rank})
        profile(folder, {f"timeline/msprof_{rank}_1_1.json": text, f"info.json.{rank}": info})

    (run,) = stepscope.open_runs(tmp_path)

    assert run.table("ranks").collect()["rank"].sort().to_list() == [0, 1]


def test_a_sample_with_a_raw_profile_of_each_rank_keeps_the_peak_of_its_device(shared: Path) -> None:
    run = stepscope.open_run(shared / "data/mindspore/synthetic_dp4")

    assert peaks(run) == [(rank, 32.0) for rank in range(4)]
    assert run.table("ranks").collect().sort("rank")["device"].to_list() == [0, 1, 2, 3]


PHASES = (
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    "1,1000,2000,1000,1000,1900,0,900,100\n2,2000,3000,1000,2100,2900,100,800,100\n"
    "-,2000,3000,1000,2100,2900,100,800,100\n"
)


@pytest.mark.parametrize(
    ("ranks", "stated", "devices"),
    [
        pytest.param([8, 9, 10], [None, None, -1], {8: 0, 9: 1, 10: 2}, id="of a second host are in their order"),
        pytest.param([1, 2], [None, None], {1: 0, 2: 1}, id="that overlap with other ranks are in their order"),
        pytest.param([0, 1], [0, 0], {0: 0, 1: 1}, id="that all state one rank are of none"),
        pytest.param([8, 9], [9, 8], {8: 1, 9: 0}, id="whatever their numbers have their stated ranks"),
    ],
)
def test_devices(tmp_path: Path, ranks: list[int], stated: list[int | None], devices: dict[int, int]) -> None:
    profile(tmp_path, {f"step_trace_raw_{rank}_detail_time.csv": PHASES for rank in ranks})
    for device, rank in enumerate(stated):
        profile(tmp_path, raw(f"20240501100000{device:03}", rank, device, number=device))

    run = stepscope.open_run(tmp_path, use_store=False)

    assert dict(run.table("ranks").select("rank", "device").collect().iter_rows()) == devices
