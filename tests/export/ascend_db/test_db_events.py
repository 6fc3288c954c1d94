"""What stands in exported databases, as other tools read them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import polars as pl
import pytest
from db_exports import EPOCH_NS, KEY, MS, STEP_NS, databases, exported, host_run, npu_rank, npu_run, select, text

from stepscope import Run, open_run
from stepscope.errors import StepscopeError
from stepscope.export import export_run
from stepscope.export.ascend_db.directory import write_ascend_db
from stepscope.export.communicators import communicator


def test_a_rank_is_a_directory(tmp_path: Path) -> None:
    made = write_ascend_db(npu_run(), tmp_path / "out")

    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert [name.split("_")[:2] for name in names] == [["node", "4000"], ["node", "4001"]]
    assert all(name.endswith("_ascend_pt") and len(name.split("_")[-3]) == 17 for name in names)
    inside = sorted(str(path.relative_to(tmp_path / "out" / names[1])) for path in made.files if names[1] in str(path))
    assert inside == [
        "ASCEND_PROFILER_OUTPUT/analysis.db",
        "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db",
        "PROF_000001_00000000000000000_AAAAAAAAAAAAAAAA/device_1/info.json.1",
        "profiler_info_1.json",
        "profiler_metadata.json",
    ]
    assert sorted(made.files) == sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in made.files)
    assert not made.left_out and not made.notes


def test_mindspore_has_names_of_its_own(tmp_path: Path) -> None:
    tables = npu_rank(0, 1, 1)
    tables["ranks"] = tables["ranks"].with_columns(framework=pl.lit("mindspore"), framework_version=pl.lit("2.7"))
    exported(Run.from_frames({0: tables}), tmp_path / "out")

    found = sorted(path.name for path in (tmp_path / "out").glob("*_ascend_ms/ASCEND_PROFILER_OUTPUT/*"))
    assert found == ["ascend_mindspore_profiler_0.db", "communication_analyzer.db"]
    info = json.loads(next((tmp_path / "out").rglob("profiler_info_0.json")).read_text())
    assert info["ms_version"] == "2.7"


def test_steps_ranks_and_hosts(tmp_path: Path) -> None:
    events = databases(exported(npu_run(), tmp_path / "out"), 1)["events"]

    start = EPOCH_NS
    assert select(events, "SELECT * FROM STEP_TIME") == [
        (4, start, start + STEP_NS - 1),
        (5, start + STEP_NS, start + 2 * STEP_NS - 1),
    ]
    assert select(events, "SELECT * FROM RANK_DEVICE_MAP") == [(1, 1)]
    assert select(events, "SELECT hostName FROM HOST_INFO") == [("node",)]
    assert select(events, "SELECT * FROM NPU_INFO") == [(1, "Ascend910B")]
    ((groups,),) = select(events, "SELECT value FROM META_DATA WHERE name = 'parallel_group_info'")
    assert json.loads(groups) == {
        communicator(KEY): {"group_name": "dp", "group_rank": 1, "global_ranks": [0, 1]},
    }
    beside = json.loads((events.parents[1] / "profiler_metadata.json").read_text())
    assert beside["parallel_group_info"] == json.loads(groups)


def test_a_kernel_is_found_from_its_operator_and_its_launch(tmp_path: Path) -> None:
    events = databases(exported(npu_run(ranks=1, steps=1), tmp_path / "out"))["events"]

    joined = f"""
        SELECT {text("api.name")}, api.startNs, {text("info.name")}, {text("info.opType")}, {text("info.taskType")},
            {text("info.inputShapes")}, task.endNs - task.startNs, {text("call.name")}, call.type
        FROM PYTORCH_API api
        JOIN CONNECTION_IDS ids ON api.connectionId = ids.id
        JOIN TASK task ON task.connectionId = ids.connectionId
        JOIN COMPUTE_TASK_INFO info ON info.globalTaskId = task.globalTaskId
        JOIN CANN_API call ON call.connectionId = task.connectionId
    """
    assert select(events, joined) == [
        (
            "aten::mm",
            str(EPOCH_NS + 100_000),
            "mm_1",
            "MatMulV3",
            "AI_CORE",
            "8,4;4,2",
            3 * MS + 1,
            "launch",
            10000,
        )
    ]
    assert select(events, "SELECT DISTINCT globalTid FROM PYTORCH_API") == [(4000 << 32 | 4000,)]
    frames = f"SELECT {text('stack')}, stackDepth FROM PYTORCH_CALLCHAINS ORDER BY stackDepth"
    assert select(events, frames) == [("net.py(3): forward", 0), ("train.py(9): main", 1)]
    counters = f"SELECT {text('name')}, value FROM TASK_PMU_INFO"
    assert sorted(select(events, counters)) == [
        ("aic_mac_ratio", 0.4),
        ("aic_mac_time", 1000.5),
        ("aic_total_cycles", 9_000_000),
        ("aic_total_time", 2500.001),
        ("cube_utilization", 62.5),
    ]


def test_copies_marks_and_collections(tmp_path: Path) -> None:
    events = databases(exported(npu_run(ranks=1, steps=1), tmp_path / "out"))["events"]

    copies = f"SELECT {text('taskType')}, size, memcpyOperation FROM TASK JOIN MEMCPY_INFO USING (globalTaskId)"
    assert select(events, copies) == [("MEMCPY_ASYNC", 4096, 1)]
    marks = f"SELECT {text('message')}, {text('domainId')}, eventType, endNs - startNs FROM MSTX_EVENTS"
    assert sorted(select(events, marks)) == [("Net", "Module", 2, 3 * MS), ("here", "default", 0, 0)]
    assert select(events, "SELECT endNs - startNs FROM GC_RECORD") == [(2 * MS,)]
    hbm = f"SELECT {text('type')}, hbmId, bandwidth FROM HBM ORDER BY timestampNs"
    assert select(events, hbm) == [("read", 0, 1.5e9), ("read", 0, 2e9)]
    assert select(events, f"SELECT {text('mode')}, llcId, hitRate FROM LLC") == [("read", 1, 25)]
    assert select(events, "SELECT freq FROM AICORE_FREQ") == [(1800,)]


def test_communication(tmp_path: Path) -> None:
    found = databases(exported(npu_run(), tmp_path / "out"))

    call = f"""
        SELECT {text("opName")}, {text("groupName")}, {text("opType")}, {text("algType")}, count, dataType, relay,
            retry, connectionId, startNs FROM COMMUNICATION_OP LIMIT 1
    """
    assert select(found["events"], call) == [
        (
            "hcom_allReduce__690_0_1",
            communicator(KEY),
            "hcom_allReduce_",
            "MESH-RING",
            1_000_000,
            11,
            1,
            0,
            103,
            EPOCH_NS + 4 * MS + 7,
        )
    ]
    task = f"SELECT {text('taskType')}, planeId, srcRank, dstRank, transportType, linkType, size, bandwidth"
    assert select(found["events"], f"{task} FROM COMMUNICATION_TASK_INFO LIMIT 2") == [
        ("Notify_Wait", 0, 0, 1, 2, 65535, 0, 0),
        ("Memcpy", 1, 0, 1, 0, 1, 1_000_000, 5e8),
    ]
    times = "SELECT group_name, elapse_time, transit_time, wait_time, synchronization_time, step, type"
    assert select(found["analysis"], f"{times} FROM CommAnalyzerTime LIMIT 1") == [
        (KEY, 4.999993, 2, 1.000003, 1, "step4", "collective")
    ]
    band = "SELECT transport_type, transit_size, transit_time, bandwidth, package_size, count, total_duration"
    assert select(found["analysis"], f"{band} FROM CommAnalyzerBandwidth LIMIT 1") == [("HCCS", 1, 2, 0.5, 0.25, 4, 2)]
    link = "SELECT hccl_op_name, src_rank, dst_rank, transit_size, bandwidth, op_name FROM CommAnalyzerMatrix"
    assert sorted(select(found["analysis"], f"{link} WHERE step = 'step4'")) == [
        ("allreduce-bottom1", "0", "1", 1, 0.5, "hcom_allReduce__690_0_1"),
        ("allreduce-middle", "0", "1", 1, 0.5, "hcom_allReduce__690_0_1"),
        ("allreduce-top1", "0", "1", 1, 0.5, "hcom_allReduce__690_0_1"),
        ("allreduce-total", "0", "1", 1, 0.5, ""),
    ]


def test_the_times_of_steps_are_our_own_answer(tmp_path: Path) -> None:
    run = npu_run()
    found = databases(exported(run, tmp_path / "out"))["analysis"]

    own = run.analyse("breakdown").filter(pl.col("rank") == 0)
    columns = ("computing_ns", "communication_ns", "overlapped_ns", "communication_not_overlapped_ns", "stage_ns")
    free = pl.col("free_ns") + pl.col("memory_not_overlapped_ns")
    wanted = own.select(pl.col("step").cast(pl.String), *(pl.col(name) / 1000 for name in columns), free / 1000).rows()
    theirs = "SELECT step, computing, communication, overlapped, communication_not_overlapped, stage, free"
    assert select(found, f"{theirs} FROM StepTraceTime") == wanted


def test_calls_of_the_host_have_a_stand_in_of_a_launch_and_a_wait(tmp_path: Path) -> None:
    made = write_ascend_db(host_run(steps=1), tmp_path / "out")
    found = databases(tmp_path / "out")

    joined = f"""
        SELECT {text("opName")}, {text("groupName")}, dataType, count, op.deviceId, {text("api.name")}, api.type,
            api.endNs - api.startNs, api.startNs = op.startNs
        FROM COMMUNICATION_OP op JOIN CANN_API api USING (connectionId)
    """
    name = "hcom_allReduce__627_0_1"
    assert select(found["events"], joined) == [(name, "group 0", 4, 500_000, 0, "not recorded", 5500, 0, 1)]
    assert select(found["events"], "SELECT endNs - startNs, globalTaskId FROM TASK") == [(0, -1)]
    assert made.notes == [
        "ranks 0-1: no device is recorded, so the number of the rank stands for it.",
        "ranks 0-1: the communication calls are those of the host, as there is no device.",
    ]


def test_only_one_layer_of_the_host_launches_a_call(tmp_path: Path) -> None:
    tables = npu_rank(0, 1, 1)
    launch = tables["slices"].filter(pl.col("correlation") == 103)
    above = launch.with_columns(slice=pl.col("slice") + 100, name=pl.lit("HCCL@HcclAllReduce"))
    tables["slices"] = pl.concat([tables["slices"], above])
    run = Run.from_frames({0: tables})
    directory = exported(run, tmp_path / "out")

    number = "SELECT api.type FROM COMMUNICATION_OP JOIN CANN_API api USING (connectionId)"
    assert select(databases(directory)["events"], number) == [(10000,)]
    again = open_run(directory, use_store=False).table("slices").filter(pl.col("category") == "runtime").collect()
    assert again.filter(pl.col("name") == "HCCL@HcclAllReduce")["correlation"].to_list() == [103]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (exported(npu_run(), tmp_path / name) for name in ("first", "second"))

    files = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert files and all((first / name).read_bytes() == (second / name).read_bytes() for name in files)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")

    with pytest.raises(StepscopeError, match="has files already"):
        write_ascend_db(npu_run(), tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*") if "cache" not in path.parts] == ["out", "mine"]


def test_nothing_is_written_into_a_recording(tmp_path: Path) -> None:
    run = open_run(exported(npu_run(), tmp_path / "out"), use_store=False)

    with pytest.raises(StepscopeError, match="inside the recording"):
        write_ascend_db(run, tmp_path / "out" / "new")


def test_it_is_one_of_the_formats(tmp_path: Path) -> None:
    made = export_run(npu_run(), tmp_path / "out", "ascend-db")

    assert any(path.name == "analysis.db" for path in made.files)
