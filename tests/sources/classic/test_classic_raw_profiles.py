"""What the device's own profiler left in `PROF_*`, beside a classic profile or alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from parts import profile, read_part, taken
from stepscope.sources.classic import ClassicSource
from stepscope.sources.classic.figures import write_device_peak
from stepscope.sources.classic.reading import of_kind
from stepscope.sources.classic.timeline import write_device
from stepscope.sources.discover import discover

T0_US = 1_714_528_800_000_000
HEADER = (
    "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID"
)
RAW = "PROF_000001_20240501100000000_ABCDEFGHIJKLMNO0"
STEPS = f"{RAW}/mindstudio_profiler_output/step_trace_20240501100050.csv"
INFO = f"{RAW}/device_3/info.json.3"
Issues = list[tuple[str, str]]


def iteration(number: int, start: int, *, model: int = 1, reduce: str = "") -> str:
    """A row: 10 us of data, 60 us forward and backward, 30 us of updates."""
    at = T0_US + start
    return f"{number},{at + 10}.25,{at + 70},{at + 100},100,60,30,10.25,{model}{reduce}\n"


def steps_of(tables: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    """Step, start, end, graph (times in us since the first start)."""
    times = ((pl.col(name) - T0_US * 1000) / 1000 for name in ("start_ns", "end_ns"))
    return tables["steps"].select("step", *times, "graph").rows() if "steps" in tables else []


def test_steps_go_from_the_end_of_the_one_before_to_their_own(tmp_path: Path) -> None:
    text = f"{HEADER}\n" + iteration(1, 0) + iteration(2, 100)

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert steps_of(tables) == [(1, 0.0, 100.0, 1), (2, 100.0, 200.0, 1)]
    first = tables["steps"].row(0, named=True)
    assert first["forward_start_ns"] == (T0_US + 10) * 1000 + 250
    assert first["backward_end_ns"] == (T0_US + 70) * 1000
    assert first["window"] == "stated"
    assert issues == []


def test_graphs_that_count_for_themselves_are_numbered_by_their_start(tmp_path: Path) -> None:
    text = (
        f"{HEADER}\n" + iteration(1, 0) + iteration(2, 200) + iteration(1, 100, model=11) + iteration(2, 300, model=11)
    )

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert [(step, graph) for step, _, _, graph in steps_of(tables)] == [(1, 1), (2, 11), (3, 1), (4, 11)]
    assert issues == []


def test_without_points_of_forward_and_backward_the_time_of_the_iteration_counts(tmp_path: Path) -> None:
    text = f"{HEADER}\n1,N/A,N/A,{T0_US + 100},100,N/A,N/A,N/A,1\n2,0,0,{T0_US + 200},100,0,0,0,1\n"

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    assert steps_of(tables) == [(1, 0.0, 100.0, 1), (2, 100.0, 200.0, 1)]
    assert tables["steps"]["forward_start_ns"].null_count() == 2
    assert issues == []


def test_communication_stands_in_pairs_of_columns_of_one_name(tmp_path: Path) -> None:
    pairs = ",Reduce Start(us),Reduce Duration(us),Reduce Start(us),Reduce Duration(us)\n"
    reduces = f",{T0_US + 40}.5,7.25,{T0_US + 60},2"
    text = HEADER + pairs + iteration(1, 0, reduce=reduces) + iteration(2, 100, reduce=",N/A,N/A,0,0")

    tables, issues = read_part(write_device, tmp_path, {STEPS: text})

    calls = tables["collectives"].select("name", "step", pl.col("start_ns") - T0_US * 1000, "duration_ns", "sequence")
    assert calls.rows() == [("Reduce_0", 1, 40_500, 7_250, 0), ("Reduce_1", 1, 60_000, 2_000, 0)]
    assert issues == []


def test_the_step_trace_of_mindspore_counts_where_it_is_there(tmp_path: Path) -> None:
    trace = "step_num,start_point,end_point,total,fp_point,bp_point\n7,100,200,100,110,150\n"

    tables, _ = read_part(
        write_device, tmp_path, {STEPS: f"{HEADER}\n" + iteration(1, 0), "step_trace_raw_0_detail_time.csv": trace}
    )

    assert tables["steps"]["step"].to_list() == [7]


@pytest.mark.parametrize(
    ("text", "steps", "issues"),
    [
        ("", [], [("error", Path(STEPS).name)]),
        (f"{HEADER}\n", [], [("warning", Path(STEPS).name)]),
        ("Op Name,Task Type\na,b\n", [], [("error", Path(STEPS).name)]),
        (f"{HEADER}\n" + iteration(1, 0) + iteration(2, 100)[:60], [1], [("error", Path(STEPS).name)]),
        (
            f"{HEADER}\n" + iteration(1, 0) + iteration(2, 100).replace("100,60", "x,60"),
            [1, 2],
            [("error", Path(STEPS).name)],
        ),
        (f"{HEADER}\n" + iteration(1, 0) + "2,N/A,N/A,soon,100,1,1,1,1\n", [1], [("error", Path(STEPS).name)]),
        (f"{HEADER}\n" + iteration(1, 0) + f"2,N/A,N/A,{T0_US + 99},N/A,1,1,1,1\n", [1], [("error", Path(STEPS).name)]),
    ],
)
def test_damage_costs_steps_and_is_told(tmp_path: Path, text: str, steps: list[int], issues: Issues) -> None:
    tables, told = read_part(write_device, tmp_path, {STEPS: text})

    assert [step for step, *_ in steps_of(tables)] == steps
    assert told == issues


def test_the_peak_is_cores_times_frequency_times_operations_a_cycle(tmp_path: Path) -> None:
    info = {"DeviceInfo": [{"id": 3, "ai_core_num": 32, "aic_frequency": "1000"}]}

    tables, issues = read_part(of_kind("device_info", write_device_peak), tmp_path, {INFO: json.dumps(info)})

    assert tables["rank_figures"].select("name", "value").rows() == [("device_peak_flops_per_s", 32 * 1000e6 * 8192)]
    assert issues == []


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("", [("error", "info.json.3")]),
        ('{"DeviceInfo": [{"ai_core', [("error", "info.json.3")]),
        ('{"DeviceInfo": [{"ai_core_num": "many", "aic_frequency": null}, 4]}', [("note", "info.json.3")]),
        ('{"DeviceInfo": {}}', [("note", "info.json.3")]),
    ],
)
def test_without_cores_and_frequency_there_is_no_peak(tmp_path: Path, text: str, issues: Issues) -> None:
    assert read_part(of_kind("device_info", write_device_peak), tmp_path, {INFO: text}) == ({}, issues)


def raw(directory: Path, stamp: str, rank: object, device: int = 0, cores: int = 32) -> None:
    """A raw profile of one device."""
    info = {"rank_id": rank, "DeviceInfo": [{"id": device, "ai_core_num": cores, "aic_frequency": 1000}]}
    folder = directory / f"PROF_000001_{stamp}_ABC" / f"device_{device}"
    folder.mkdir(parents=True)
    (folder / f"info.json.{device}").write_text(json.dumps(info))


def test_each_rank_has_its_newest_raw_profile_whatever_the_number_of_its_device(tmp_path: Path) -> None:
    directory = tmp_path / "profiler"
    profile(directory, {f"flops_summary_{rank}.json": '{"cube_FLOPs": 1.0}' for rank in (2, 10)})
    raw(directory, "20240501100000000", 10, device=2, cores=1)
    raw(directory, "20240601100000000", 10, device=2, cores=2)
    raw(directory, "20240501110000000", -1, device=2, cores=3)

    run = stepscope.open_run(directory)

    peaks = run.table("rank_figures").filter(pl.col("name") == "device_peak_flops_per_s").collect().sort("rank")
    assert peaks.select("rank", pl.col("value") / 8192e9).rows() == [(2, 3.0), (10, 2.0)]
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


def old_profile(directory: Path, texts: dict[str, str]) -> Path:
    """A raw profile of two iterations as up to CANN 7.0."""
    files: dict[str, str | bytes] = {
        f"{RAW}/device_0/info.json.0": json.dumps(
            {"rank_id": 4, "DeviceInfo": [{"ai_core_num": 2, "aic_frequency": 9}]}
        ),
        f"{OLD}/task_time_0_1_1.json": events(("d", KERNEL, 0, 40)),
        f"{OLD}/hccl_0_1_1.json": events(("c", CALL, 50, 20)),
        f"{OLD}/msprof_0_1_10.json": events(("d", KERNEL, 1000, 40), ("c", CALL, 1050, 20), hardware="Ascend Hardware"),
        f"{OLD}/task_time_0_1_10.json": events(("d", KERNEL, 1000, 40)),
        f"{OLD}/msprof_0_1_2.json": events(("d", KERNEL, 500, 40), ("c", CALL, 550, 20)),
        **texts,
    }
    profile(directory, files)
    return directory


def read_old(directory: Path) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables and issues of the only input there."""
    (item,) = discover([directory]).inputs
    assert item.label == "rank 4"
    return taken(lambda sink: ClassicSource().read(item, sink))


def test_exports_by_iteration_become_kernels_calls_and_steps_each_once(tmp_path: Path) -> None:
    tables, issues = read_old(old_profile(tmp_path, {}))

    at = (pl.col("start_ns") - T0_US * 1000) // 1000
    kernels = tables["kernels"].filter(pl.col("kind") == "compute").select("name", at, "step", "core", "stream")
    assert kernels.rows() == [(KERNEL, start, step, "AI_CORE", 5) for start, step in ((0, 1), (500, 2), (1000, 10))]
    calls = tables["collectives"].select("operation", at, "duration_ns", "step", "on_device")
    assert calls.rows() == [
        ("all_reduce", start, 20_000, step, True) for start, step in ((50, 1), (550, 2), (1050, 10))
    ]
    assert tables["steps"].select("step", at).rows() == [(1, 0), (2, 500), (10, 1000)]
    assert "device_peak_flops_per_s" in tables["rank_figures"]["name"].to_list()
    assert issues == []


def test_a_step_trace_beside_iterations_tells_the_steps(tmp_path: Path) -> None:
    text = f"{HEADER}\n" + "".join(iteration(number, start) for number, start in ((1, -10), (2, 490), (10, 990)))

    twice = {f"{RAW}/device_0/summary/step_trace_0_1_{number}.csv": text for number in (1, 2)}
    tables, issues = read_old(old_profile(tmp_path, twice))

    assert tables["steps"]["start_ns"].to_list() == [(T0_US + start) * 1000 for start in (-10, 490, 990)]
    assert issues == []


def test_a_raw_profile_alone_is_of_no_framework(tmp_path: Path) -> None:
    run = stepscope.open_run(old_profile(tmp_path, {}))

    known = run.table("ranks").collect().row(0, named=True)
    assert (known["rank"], known["device"], known["device_kind"], known["framework"]) == (4, 0, "npu", None)


def test_what_mindspore_made_of_the_same_work_counts_where_it_is_there(tmp_path: Path) -> None:
    trace = "step_num,start_point,end_point,total,fp_point,bp_point\n7,100,200,100,110,150\n"

    tables, _ = read_old(old_profile(tmp_path, {"step_trace_raw_4_detail_time.csv": trace}))

    assert tables["steps"]["step"].to_list() == [7]
    assert not {"kernels", "collectives"} & tables.keys()


@pytest.mark.parametrize("text", ["", "[{", "{}", "kernel,time\n"])
def test_a_damaged_iteration_costs_itself(tmp_path: Path, text: str) -> None:
    tables, issues = read_old(old_profile(tmp_path, {f"{OLD}/msprof_0_1_2.json": text}))

    assert tables["kernels"].filter(pl.col("kind") == "compute")["step"].to_list() == [1, 10]
    assert [name for _, name in issues] == ["msprof_0_1_2.json"]


def test_iterations_of_models_that_count_for_themselves_are_numbered_by_their_start(tmp_path: Path) -> None:
    other = events(("d", KERNEL, 200, 40))

    tables, issues = read_old(old_profile(tmp_path, {f"{OLD}/msprof_0_7_1.json": other}))

    at = (pl.col("start_ns") - T0_US * 1000) // 1000
    assert tables["steps"].select("step", at).rows() == [(1, 0), (2, 200), (3, 500), (4, 1000)]
    assert issues == []


def test_an_iteration_is_as_long_as_the_work_of_its_device(tmp_path: Path) -> None:
    meta = {"ph": "M", "name": "process_name", "pid": 50, "tid": 0, "args": {"name": "CANN"}}
    launch = {"ph": "X", "name": "launch", "pid": 50, "tid": 0, "ts": f"{T0_US - 90}.000", "dur": 5, "args": {}}
    text = json.dumps([*json.loads(events(("d", KERNEL, 0, 40))), meta, launch])

    tables, _ = read_old(old_profile(tmp_path, {f"{OLD}/msprof_0_1_1.json": text}))

    assert "launch" in tables["slices"]["name"].to_list()
    assert tables["steps"]["start_ns"][0] == T0_US * 1000


def test_a_step_trace_that_lost_steps_does_not_tell_them(tmp_path: Path) -> None:
    name = f"{RAW}/device_0/summary/step_trace_0_1_1.csv"
    text = f"{HEADER}\n" + iteration(1, -10) + iteration(2, 490)

    tables, issues = read_old(old_profile(tmp_path, {name: text[:-20]}))

    at = (pl.col("start_ns") - T0_US * 1000) // 1000
    assert tables["steps"].select("step", at).rows() == [(1, 0), (2, 500), (10, 1000)]
    assert issues == [("error", Path(name).name)]


def test_the_newest_raw_profile_is_told_by_its_time_not_by_its_number(tmp_path: Path) -> None:
    for number, time, cores in ((2, "20240501100000000", 1), (1, "20240601100000000", 5)):
        info = {"rank_id": 0, "DeviceInfo": [{"ai_core_num": cores, "aic_frequency": 1000}]}
        name = f"PROF_00000{number}_{time}_ABC/device_0/info.json.0"
        profile(tmp_path, {name: json.dumps(info), "flops_summary_0.json": '{"cube_FLOPs": 1.0}'})

    peaks = (
        stepscope.open_run(tmp_path).table("rank_figures").filter(pl.col("name") == "device_peak_flops_per_s").collect()
    )

    assert (peaks["value"] / 8192e9).to_list() == [5.0]


def test_steps_of_several_files_count_once_and_calls_after_the_last_step_are_of_none(tmp_path: Path) -> None:
    header = f"{HEADER},Reduce Start(us),Reduce Duration(us)\n"
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

    peaks = run.table("rank_figures").filter(pl.col("name") == "device_peak_flops_per_s").collect()
    assert sorted(peaks.select("rank", "value").rows()) == [(rank, 32 * 1000e6 * 8192) for rank in range(4)]
    assert run.table("ranks").collect().sort("rank")["device"].to_list() == [0, 1, 2, 3]


def told_ranks(tmp_path: Path, ranks: list[int], devices: dict[int, int | None]) -> dict[int, int | None]:
    """Rank to device of a folder with files of MindSpore by rank, and raw profiles by device."""
    files = {f"step_trace_raw_{rank}_detail_time.csv": STEP_TRACE for rank in ranks}
    for device, stated in devices.items():
        rank = {} if stated is None else {"rank_id": stated}
        raw = f"PROF_00000{device}_20240501100000{device:03}_ABC/device_{device}/info.json.{device}"
        files[raw] = json.dumps({**rank, "DeviceInfo": [{"id": device, "ai_core_num": 2, "aic_frequency": 9}]})
    profile(tmp_path, dict(files))
    run = stepscope.open_run(tmp_path, use_store=False)
    return dict(run.table("ranks").select("rank", "device").collect().iter_rows())


STEP_TRACE = (
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    "1,1000,2000,1000,1000,1900,0,900,100\n2,2000,3000,1000,2100,2900,100,800,100\n"
    "-,2000,3000,1000,2100,2900,100,800,100\n"
)


def test_devices_of_a_second_host_are_its_ranks_in_their_order(tmp_path: Path) -> None:
    assert told_ranks(tmp_path, [8, 9, 10], {0: None, 1: None, 2: -1}) == {8: 0, 9: 1, 10: 2}


def test_devices_that_overlap_with_other_ranks_are_in_their_order(tmp_path: Path) -> None:
    assert told_ranks(tmp_path, [1, 2], {0: None, 1: None}) == {1: 0, 2: 1}


def test_a_rank_that_all_devices_state_is_that_of_none(tmp_path: Path) -> None:
    assert told_ranks(tmp_path, [0, 1], {0: 0, 1: 0}) == {0: 0, 1: 1}


def test_stated_ranks_count_whatever_the_numbers_of_devices(tmp_path: Path) -> None:
    assert told_ranks(tmp_path, [8, 9], {0: 9, 1: 8}) == {8: 1, 9: 0}
