"""Files of the host: `host_info/`, CPU use, memory."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from export_samples import BASE, MS, exported, lines, make_export, raw_files, read, torch_frames

from stepscope.export.classic.cpu_usage import write_cpu_usage
from stepscope.export.classic.host_info import write_host_info
from stepscope.export.classic.memory_usage import write_memory_usage

INFO, TIMELINE = "host_info/host_info_1.csv", "host_info/timeline_1.json"
MEMORY, DATASET = "host_info/host_memory_1.csv", "host_info/dataset_1.csv"
HEADER = "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)"


def test_marks_are_two_rows_each_and_samples_points(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_host_info)

    rows = lines(export, INFO)
    assert rows[0] == HEADER
    assert len(rows) == 1 + 2 * 15 + 5
    assert rows[1] == f"77,77,0,Dataset,_SingleProcessDataLoaderIter,getNext,1,0,,{100 << 10},{BASE // 1000}"
    assert f"77,77,0,Host,memory,sample,1,2,,{101 << 10},{BASE // 1000 + 5000}" in rows
    assert lines(export, MEMORY)[0] == HEADER
    assert lines(export, DATASET) == [
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info",
        "_SingleProcessDataLoaderIter,getNext,3,2000.0,",
    ]
    events = json.loads(read(export, TIMELINE))
    assert {event["ph"] for event in events} == {"X", "i"}
    assert events[0] == {
        "name": "_SingleProcessDataLoaderIter::getNext",
        "cat": "Dataset",
        "ts": BASE // 1000,
        "dur": 2000.0,
        "ph": "X",
        "pid": "77",
        "tid": "77",
        "args": {"parent_pid": "0"},
    }


def test_the_option_decides_between_time_and_memory(tmp_path: Path) -> None:
    time, memory, none = (
        make_export(tmp_path / name, options={"profile_framework": wanted})
        for name, wanted in (("a", "time"), ("b", "memory"), ("c", None))
    )

    for export in (time, memory, none):
        write_host_info(export)

    assert all(line.split(",")[9] == "0" for line in lines(time, INFO)[1:])
    assert MEMORY in time.left_out
    assert {line.split(",")[7] for line in lines(memory, INFO)[1:]} == {"2"}
    assert not none.written
    assert none.left_out[INFO] == "profile_framework is off"


def test_chosen_steps_narrow_what_has_no_step_of_its_own(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.run, export.steps = export.run.select(steps=[5]), [5]

    write_host_info(export)

    times = [int(line.rsplit(",", 1)[1]) for line in lines(export, INFO)[1:]]
    assert min(times) >= BASE // 1000 + 10_000
    assert max(times) <= BASE // 1000 + 20_000 + 10_000


def test_times_go_by_the_clock_of_rank_0(tmp_path: Path) -> None:
    export = exported(
        make_export(tmp_path, clock={"offset_ns": 4000, "error_ns": 10, "method": "store"}), write_host_info
    )

    assert lines(export, INFO)[1].endswith(f",{BASE // 1000 + 4}")


def test_cpu_use_is_that_between_samples(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.written.append("pipeline_profiling_1.json")

    write_cpu_usage(export)

    usage = json.loads(read(export, "minddata_cpu_utilization_1.json"))
    assert usage["cpu_processor_num"] == 2
    assert usage["sampling_interval"] == 5
    assert usage["time_stamp"] == [(BASE + 5 * MS * n) // MS for n in range(5)]
    machine = usage["device_info"]
    assert machine["user_utilization"] == [50] * 4
    assert machine["sys_utilization"] == machine["idle_utilization"] == [25] * 4
    assert machine["io_utilization"] == [0] * 4
    assert machine["context_switch_count"] == [100] * 4
    assert machine["runnable_process"] == [3] * 4
    assert usage["process_info"] == {"user_utilization": [50] * 4, "sys_utilization": [10] * 4}
    assert usage["op_info"] == [{"op_id": 1, "metrics": {"user_utilization": [20] * 4, "sys_utilization": [0] * 4}}]


def test_one_sample_is_no_share(tmp_path: Path) -> None:
    one = "\n".join([*raw_files()["host.csv"].splitlines()[:2], ""])
    export = exported(make_export(tmp_path, raw={"host.csv": one}), write_cpu_usage)

    assert not export.written
    assert "needs two" in export.left_out["minddata_cpu_utilization_1.json"]


def memory(points: int) -> dict[str, pl.DataFrame]:
    """Memory that grows to the middle and shrinks again, a block of 1 MiB each time."""
    half = points // 2
    changes = [1 << 20] * half + [-(1 << 20)] * (points - half)
    curve = pl.DataFrame({"time_ns": [BASE + n * MS for n in range(points)], "change_bytes": changes}).with_columns(
        allocated_bytes=pl.col("change_bytes").cum_sum() + (1 << 30), reserved_bytes=pl.lit(2 << 30)
    )
    blocks = pl.DataFrame(
        {
            "name": ["aten::empty"] * half,
            "size_bytes": [1 << 20] * half,
            "allocation_ns": [BASE + n * MS for n in range(half)],
            "release_ns": [BASE + (points - 1 - n) * MS for n in range(half)],
        }
    )
    return {**torch_frames(), "memory_curve": curve, "allocations": blocks}


def test_memory_is_told_in_gib_with_what_was_there_before(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, memory(6)), write_memory_usage)

    assert json.loads(read(export, "memory_usage_summary_1.json")) == {
        "capacity": round(8e9 / (1 << 30), 9),
        "allocations": 3,
        "deallocations": 3,
        "peak_mem": round(1 + 3 / 1024, 9),
        "static_mem": 1.0,
    }
    (graph,) = json.loads(read(export, "memory_usage_details_1.json")).values()
    assert list(graph)[-1] == "breakdowns"
    assert graph["lines"] == [round(1 + n / 1024, 9) for n in (1, 2, 3, 2, 1, 0)]
    assert [node["node_id"] for node in graph["nodes"]] == list(range(6))
    assert graph["nodes"][0]["name"] == "aten::empty"
    assert [len(blocks) for blocks in graph["breakdowns"]] == [1, 2, 3, 2, 1, 0]
    assert graph["breakdowns"][2][0]["life_end"] in (3, 4, 5)
    assert lines(export, "cpu_ms_memory_record_1.txt")[:2] == [
        "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)",
        f"{BASE},{(1 << 30) + (1 << 20)},{2 << 30},{(1 << 30) + (1 << 20)}",
    ]


def test_the_device_comes_before_the_host(tmp_path: Path) -> None:
    frames = memory(6)
    ours = {name: frames[name].with_columns(device=pl.lit(0, pl.Int32)) for name in ("memory_curve", "allocations")}
    host = frames["memory_curve"].with_columns(device=pl.lit(None, pl.Int32), allocated_bytes=pl.lit(5, pl.Int64))
    curve = pl.concat([ours["memory_curve"], host])
    device = f"time_ns,device,name,value\n{BASE},0,memory_total_bytes,{2 << 30}\n"
    ours["memory_curve"] = curve
    export = exported(make_export(tmp_path, {**frames, **ours}, raw={"device.csv": device}), write_memory_usage)

    summary = json.loads(read(export, "memory_usage_summary_1.json"))
    assert summary["capacity"] == 2.0
    assert summary["allocations"] == 3
    assert lines(export, "cpu_ms_memory_record_1.txt")[1] == f"{BASE},5,{2 << 30},5"


def test_changes_are_differences_where_only_totals_are_known(tmp_path: Path) -> None:
    frames = memory(6)
    totals = frames["memory_curve"].drop("change_bytes")
    export = exported(make_export(tmp_path, {**frames, "memory_curve": totals}), write_memory_usage)

    summary = json.loads(read(export, "memory_usage_summary_1.json"))
    assert (summary["allocations"], summary["deallocations"]) == (2, 3)


def test_a_long_curve_is_thinned_and_keeps_its_peak(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, memory(5001)), write_memory_usage)

    (graph,) = json.loads(read(export, "memory_usage_details_1.json")).values()
    assert len(graph["lines"]) == len(graph["nodes"]) == len(graph["breakdowns"]) == 1000
    assert max(graph["lines"]) == pytest.approx(1 + 2500 / 1024)
    assert len(lines(export, "cpu_ms_memory_record_1.txt")) == 5002


def test_without_memory_the_reason_is_told(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_memory_usage)

    assert not export.written
    assert "profile_memory" in export.left_out["memory_usage_summary_1.json"]
