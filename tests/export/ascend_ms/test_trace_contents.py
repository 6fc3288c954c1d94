"""What trace_view.json has of an Ascend device: tasks, arrows, queues, marks and counters, which our reader finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from ascend_files import (
    CALL,
    CALLS,
    CANN,
    EPOCH_US,
    HARDWARE,
    PYTHON,
    TraceEvents,
    call_row,
    kernel_row,
    rank_directory,
    write_kernels,
)
from polars.testing import assert_frame_equal

from stepscope import Run, open_run
from stepscope.export import Made, export_run
from stepscope.tables import COMMUNICATION_TASKS, COUNTERS

TABLES = (
    *("slices", "operators", "flows", "kernels", "collectives", "communication_tasks", "counters", "steps"),
    *("groups", "stacks"),
)
COLLECTION = 4343843
COUNTER_PROCESS = 4344099
"""A process of counters of device 3."""
MIB = 1 << 20
MEMCPY = {"src rank": 0, "dst rank": 1, "transport type": "SDMA", "size(Byte)": 4096, "link type": "HCCS"}
WAIT = {"src rank": 0, "dst rank": 4294967295, "transport type": "LOCAL", "size(Byte)": 0, "data type": "INVALID_TYPE"}
EVENT = {"Task Type": "EVENT_WAIT_SQE", "Stream Id": 2}


def recorded(tmp_path: Path) -> Run:
    """One step with loading, two operators, their kernels, a copy, a wait, a call with its tasks, and counters."""
    output = rank_directory(tmp_path / "in")
    rows = [kernel_row(5, 1000.125), kernel_row(5, 1200), call_row(5, 1400, 0)]
    write_kernels(output, rows=rows)
    trace = TraceEvents()
    add = trace.add
    trace._label("thread_name", CALLS, 2, name="Plane 1")
    trace._label("process_name", COLLECTION, name="Python GC")
    trace._label("process_labels", COLLECTION, labels="CPU")
    add("ProfilerStep#5", PYTHON, 1, 0, 9000, "cpu_op")
    add("enumerate(DataLoader)#Loader.__next__", PYTHON, 1, 10, 90, "cpu_op")
    add("Optimizer.step#AdamW.step", PYTHON, 1, 800, 50, "cpu_op")
    add("of the user", PYTHON, 1, 860, 20)
    for number, at in enumerate((500, 600)):
        connection = number + 1
        told = {"Sequence number": number, "Fwd thread id": 0, "Input Dims": "8,16;16,4"}
        add("aten::mm", PYTHON, 1, at, 50, "cpu_op", **told, **{"Call stack": "a.py(1): f;\r\nb.py(2): g"})
        add("Enqueue@mm", PYTHON, 1, at + 10, 5, "enqueue", correlation_id=connection)
        add("Dequeue@mm", PYTHON, 2, at + 20, 30, "dequeue", correlation_id=connection)
        add("AscendCL@mm", CANN, 2, at + 21, 20, connection_id=connection)
        add("Node@launch", CANN, 2, at + 25, 4, connection_id=connection)
        task = {"Task Type": "AI_CORE", "Stream Id": 2, "connection_id": connection}
        add("MatMul_1", HARDWARE, 2, (1000.125, 1200)[number], 100.5, **task)
    copy = {"Task Type": "MEMCPY_ASYNC", "size(B)": 4096, "operation": "device to host", "Stream Id": 2}
    add("MEMCPY_ASYNC", HARDWARE, 2, 900, 20, **copy)
    add("EVENT_WAIT", HARDWARE, 2, 930, 5, **EVENT)
    add(CALL.format(0), CALLS, 0, 1400, 500, connection_id=99, data_type="BFP16", count=1000, relay="no", retry="yes")
    add("Node@launch", CANN, 2, 700, 4, connection_id=99)
    add("Notify_Wait", CALLS, 1, 1400, 300, **WAIT, **{"stream id": 7})
    add("Memcpy", CALLS, 2, 1400.05, 200.001, **MEMCPY, **{"stream id": 8})
    add("GC", COLLECTION, 1, 950, 30, "GC")
    for name, value in {
        "AI Core Freq": {"MHz": 1800},
        "HBM 1/Read": {"Read(MB/s)": 5.5},
        "DDR/Write": {"Write(MB/s)": 3},
        "LLC 0 Read/Throughput": {"Throughput(MB/s)": 7},
        "LLC 0 Read/Hit Rate": {"Hit Rate(%)": 0.506},
    }.items():
        trace.events.append(
            {"ph": "C", "name": name, "pid": COUNTER_PROCESS, "tid": 0, "ts": f"{EPOCH_US}.003", "args": value}
        )
    for number, (phase, at) in enumerate((("s", 500), ("f", 610))):
        arrow = {"ph": phase, "name": "fwdbwd", "cat": "fwdbwd", "id": 7, "pid": PYTHON, "tid": number + 1}
        trace.events.append({**arrow, "ts": f"{EPOCH_US + at}.000"})
    trace.write(output)
    return open_run(tmp_path / "in", use_store=False)


def again(run: Run, tmp_path: Path) -> tuple[list[dict[str, Any]], Run, Made]:
    """The events that are written of a run, the run as it is read back, and what was told."""
    made = export_run(run, tmp_path / "out", "ascend-text")
    (trace,) = tmp_path.glob("out/*/ASCEND_PROFILER_OUTPUT/trace_view.json")
    return json.loads(trace.read_bytes()), open_run(tmp_path / "out", use_store=False), made


def rows(run: Run, table: str) -> pl.DataFrame:
    numbers = ("slice", "parent", "kernel", "collective", "stack")
    return run.table(table).collect().drop(numbers, strict=False).sort(pl.all(), nulls_last=True)


def test_a_recording_of_an_ascend_device_comes_back(tmp_path: Path) -> None:
    run = recorded(tmp_path)

    _, read, made = again(run, tmp_path)

    for table in TABLES:
        assert run.has(table)
        assert_frame_equal(rows(read, table), rows(run, table))
    assert read.issues["problem"].to_list() == run.issues["problem"].to_list()
    assert not any("trace_view" in name for name in made.left_out)


def test_the_recording_has_what_is_compared(tmp_path: Path) -> None:
    run = recorded(tmp_path)

    categories = set(run.table("slices").collect()["category"])
    assert categories >= {"annotation", "queue", "runtime", "communication_task", "other", "memory", "gc", "operator"}
    assert set(run.table("flows").collect()["kind"]) == {"forward_backward", "enqueue_dequeue"}
    tasks = run.table("communication_tasks").sort("start_ns").select("plane", "source", "destination", "link", "call")
    assert tasks.collect().rows() == [(0, 4, None, None, CALL.format(0)), (1, 4, 7, "HCCS", CALL.format(0))]
    assert run.table("counters").collect()["value"].sort().to_list() == [0.506, 1800.0, 3.0 * MIB, 5.5 * MIB, 7.0 * MIB]


def test_tasks_are_told_as_the_format_tells_them(tmp_path: Path) -> None:
    events, _, _ = again(recorded(tmp_path), tmp_path)

    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    task = next(event for event in events if event["name"] == "Memcpy")
    assert tracks[task["pid"], task["tid"]] == "Plane 1"
    assert tracks[task["pid"], 0] == "Group 0 Communication"
    assert task["args"] == {
        "duration estimated(us)": 200.001,
        "stream id": 8,
        "plane id": 1,
        "task type": "Memcpy",
        "src rank": 0,
        "dst rank": 1,
        "transport type": "SDMA",
        "size(Byte)": 4096,
        "data type": "INVALID_TYPE",
        "link type": "HCCS",
        "bandwidth(GB/s)": 4096 / 200_001,
    }


def test_arrows_lead_from_operators_queues_and_launches_to_the_device(tmp_path: Path) -> None:
    events, _, _ = again(recorded(tmp_path), tmp_path)

    arrows: dict[str, list[tuple[str, Any, float]]] = {}
    for event in events:
        if event["ph"] in "sf":
            at = int(event["ts"].replace(".", "")) - EPOCH_US * 1000
            arrows.setdefault(event["cat"], []).append((event["ph"], event["id"], at / 1000))
    kernel = EPOCH_US * 1000 + 1_000_125
    assert arrows["async_npu"][:2] == [("s", kernel, 500.0), ("f", kernel, 1000.125)]
    assert arrows["async_task_queue"][:2] == [("s", "1", 510.0), ("f", "1", 520.0)]
    assert arrows["HostToDevice"][:2] == [("s", str(1 << 32), 525.0), ("f", str(1 << 32), 1000.125)]
    assert ("f", str(99 << 32), 1400.0) in arrows["HostToDevice"]
    assert arrows["fwdbwd"] == [("s", "7", 500.0), ("f", "7", 610.0)]
    names = {event["name"] for event in events if event["ph"] in "sf"}
    assert names >= {"torch_to_npu", "enqueue_to_dequeue", f"HostToDevice{1 << 32}", "fwdbwd"}


def test_what_is_in_no_chosen_step_is_not_drawn(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    names = ("steps", "slices", "flows", "communication_tasks")
    frames = {name: run.table(name).collect().drop("rank") for name in names}
    later = ("start_ns", "end_ns", "window_start_ns", "window_end_ns", "from_ns", "to_ns")
    second = {
        name: rows.with_columns(
            *(pl.col(column) + 10_000_000 for column in later if column in rows.columns),
            *([pl.col("step") + 1] if "step" in rows.columns else []),
        )
        for name, rows in frames.items()
    }
    both = {name: pl.concat([frames[name], second[name]]) for name in names}
    whole, _, _ = again(Run.from_frames({0: both}), tmp_path / "whole")

    events, _, _ = again(Run.from_frames({0: both}).select(steps=6), tmp_path / "one")

    begun = (EPOCH_US + 10_000) * 1000
    for phase, name in (("X", "Memcpy"), ("s", "enqueue_to_dequeue"), ("s", "fwdbwd"), ("X", "aten::mm")):
        first, one = (
            [int(e["ts"].replace(".", "")) for e in each if (e["ph"], e["name"]) == (phase, name)]
            for each in (whole, events)
        )
        assert one
        assert len(first) == 2 * len(one)
        assert min(one) > begun


def test_marks_that_tools_look_for_are_operators_and_others_are_not(tmp_path: Path) -> None:
    events, _, _ = again(recorded(tmp_path), tmp_path)

    said = {event["name"].partition("#")[0]: event.get("cat") for event in events if event["ph"] == "X"}
    assert said["enumerate(DataLoader)"] == said["Optimizer.step"] == said["ProfilerStep"] == "cpu_op"
    assert said["of the user"] is None
    assert (said["Enqueue@mm"], said["Dequeue@mm"], said["GC"]) == ("enqueue", "dequeue", "GC")


def test_counters_without_a_name_in_the_format_have_their_own_and_are_told(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    frames = {name: run.table(name).collect().drop("rank") for name in ("steps", "slices")}
    power = COUNTERS.frame(time_ns=[EPOCH_US * 1000], name=["power_watts"], value=[250.5])

    events, _, made = again(Run.from_frames({0: {**frames, "counters": power}}), tmp_path)

    (sample,) = (event for event in events if event["ph"] == "C")
    assert (sample["name"], sample["args"]) == ("power_watts", {"value": 250.5})
    assert "power_watts" in made.left_out["trace_view.json (counters)"]


def test_tasks_of_unknown_calls_come_before_groups_and_ranks_outside_of_groups_are_told(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    frames = {name: run.table(name).collect().drop("rank") for name in ("steps", "collectives", "groups")}
    start = frames["collectives"]["start_ns"][0]
    tasks = COMMUNICATION_TASKS.frame(
        start_ns=[start, start + 10],
        duration_ns=[5, 0],
        name=["Memcpy", "Odd"],
        call=[CALL.format(0), None],
        plane=[None, 3],
        source=[5, None],
        size_bytes=[7, 9],
    )

    events, _, made = again(Run.from_frames({0: {**frames, "communication_tasks": tasks}}), tmp_path)

    track = {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["name"] == "thread_name" and "Analysis" not in event["args"]["name"]
    }
    assert {tid: name for tid, name in track.items() if name.startswith(("Plane", "Group"))} == {
        0: "Plane 3",
        1: "Group 0 Communication",
        2: "Plane",
    }
    assert "1 task" in made.left_out["trace_view.json (ranks of tasks)"]
