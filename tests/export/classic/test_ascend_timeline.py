"""The classic timeline of an Ascend device: its files, fixed numbers and names, and that it is read back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from export_samples import BASE, MS, US, steps
from polars.testing import assert_frame_equal

from stepscope import Run, open_run
from stepscope.export import export_run
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS, RANKS

NET = "Default/network-TrainOneStepCell/_backbone-Net"
WORK = {
    f"{NET}/conv-Conv2d/Conv2D-op1": ("Conv2D", "AI_CORE", 3, "compute", 2000),
    f"{NET}/relu-ReLU/ReLU-op2": ("ReLU", "AI_VECTOR_CORE", 4, "compute", 3000),
    "Default/GetNext-op3": ("GetNext", "AI_CPU", 5, "compute", 4000),
    "MEMCPY_ASYNC": ("MEMCPY_ASYNC", "SDMA", 3, "memory", 5000),
}
"""Name, type, core, stream, kind and start in the step (us) of the device's work, each 500 us long."""


def ascend_run(operators: bool = False, device: int = 5) -> Run:
    """A rank of MindSpore with two steps, in each of which it computes, copies, and reduces."""
    rows = [
        (BASE + 10 * MS * step + start * US, name, *facts, 4 + step)
        for step in range(2)
        for name, (*facts, start) in WORK.items()
    ]
    names = ("start_ns", "name", "type", "core", "stream", "kind", "step")
    kernels = KERNELS.frame(
        kernel=range(len(rows)),
        duration_ns=[500 * US] * len(rows),
        **dict(zip(names, (list(each) for each in zip(*rows, strict=True)), strict=True)),
    )
    calls = COLLECTIVES.frame(
        collective=range(4),
        group=["AllReduce-op7", "AllReduce-op8"] * 2,
        sequence=[0, 0, 1, 1],
        operation=["all_reduce"] * 4,
        name=["stream_9_0_AllReduce-op7", "stream_9_1_AllReduce-op8"] * 2,
        start_ns=[BASE + 10 * MS * step + at * US for step in range(2) for at in (6000, 7000)],
        duration_ns=[900 * US] * 4,
        on_device=[True] * 4,
        stream=[9] * 4,
        step=[4, 4, 5, 5],
    )
    told = {"framework": ["mindspore"], "device_kind": ["npu"], "device": [device], "world_size": [1]}
    tables = {"ranks": RANKS.frame(rank=[0], **told), "steps": steps(2), "kernels": kernels, "collectives": calls}
    if operators:
        tables["operators"] = OPERATORS.frame(
            slice=[0], start_ns=[BASE], duration_ns=[US], name=["Default/Cast-op4"], thread=["77"], step=[4]
        )
    return Run.from_frames({0: tables})


def made(run: Run, directory: Path, kind: str = "ascend") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The timeline and the summary that are written of a run."""
    export_run(run, directory, "classic")
    profiler = directory / "profiler"
    assert sorted(file.name for file in profiler.glob("*_timeline_*.json")) == [
        f"{kind}_timeline_display_0.json",
        f"{kind}_timeline_summary_0.json",
    ]
    texts = (profiler / f"{kind}_timeline_{what}_0.json" for what in ("display", "summary"))
    display, summary = (json.loads(text.read_text()) for text in texts)
    return display, summary


def test_work_has_the_fixed_numbers_of_the_format(tmp_path: Path) -> None:
    events, _ = made(ascend_run(operators=True), tmp_path)

    ranges = [event for event in events if event["ph"] == "X"]
    places = Counter((event["pid"], event["tid"]) for event in ranges if event["pid"] != 12000)
    scopes = places.pop((5, 100001))
    assert places == {
        (5, 3): 4,
        (5, 4): 2,
        (9000, 5): 2,
        (10000, 9): 4,
        (11000, "HostCpuOps0"): 1,
        (5, 100000): 2,
    }
    assert scopes
    assert {event["tid"] for event in ranges if event["pid"] == 12000} == {7999, 8000, 8001, 8002}
    labels = {event["pid"]: event["args"]["labels"] for event in events if event["name"] == "process_labels"}
    assert (labels[5], labels[9000], labels[10000]) == ("AICORE OP", "AICPU OP", "Communication Op")


def test_work_and_calls_have_the_names_of_the_format(tmp_path: Path) -> None:
    events, summary = made(ascend_run(), tmp_path)

    first = next(event for event in events if event["name"] == "Conv2D-op1")
    assert first["args"] == {"type": "Conv2D", "fullname": f"{NET}/conv-Conv2d/Conv2D-op1"}
    assert (first["ts"], first["dur"]) == ((BASE + 2 * MS) / 1000, 500)
    calls = [(event["name"], event["args"]) for event in events if event["pid"] == 10000 and event["ph"] == "X"]
    assert calls[:2] == [("AllReduce-op7", {"type": "AllReduce"}), ("AllReduce-op8", {"type": "AllReduce"})]
    scopes = {
        (event["scope_level"], event["name"]) for event in events if event.get("tid") == 100001 and "dur" in event
    }
    assert scopes == {
        (0, "Default"),
        (1, "network-TrainOneStepCell"),
        (2, "_backbone-Net"),
        (3, "conv-Conv2d"),
        (3, "relu-ReLU"),
    }
    assert summary == {
        "total_time": 4.0,
        "num_of_streams": 3,
        "num_of_ops": 4,
        "op_exe_times": 8,
        "max_scope_name_num": 4,
    }


def test_it_is_read_back(tmp_path: Path) -> None:
    run = ascend_run()
    made(run, tmp_path)

    again = open_run(tmp_path, use_store=False)

    columns = ("start_ns", "duration_ns", "kind", "type", "stream", "step")
    kernels = again.table("kernels").select(columns).collect()
    assert_frame_equal(kernels, run.table("kernels").select(columns).collect())
    assert again.table("kernels").filter(pl.col("core") == "AI_CPU").collect().height == 2
    calls = ("group", "sequence", "operation", "name", "start_ns", "duration_ns", "stream", "step")
    assert_frame_equal(
        again.table("collectives").select(calls).collect(), run.table("collectives").select(calls).collect()
    )
    assert not again.issues.filter(pl.col("problem").str.contains("total_time|times")).height


def test_kernels_that_communicate_stand_with_the_calls_once(tmp_path: Path) -> None:
    run = ascend_run()
    tables = {name: run.table(name).collect().drop("rank") for name in ("ranks", "steps", "kernels", "collectives")}
    call = tables["collectives"].head(1)
    whole = KERNELS.frame(
        kernel=[90, 91],
        start_ns=[call["start_ns"][0], BASE + 9 * MS],
        duration_ns=[900 * US, 10 * US],
        name=["hcom_allReduce__1", "MoeDistributeDispatch"],
        kind=["communication"] * 2,
        step=[4, 4],
    )
    tables["kernels"] = KERNELS.conform(pl.concat([tables["kernels"], whole], how="diagonal"))

    events, summary = made(Run.from_frames({0: tables}), tmp_path)

    calls = [event for event in events if event["pid"] == 10000 and event["ph"] == "X"]
    assert [event["name"] for event in calls] == [
        *("AllReduce-op7", "AllReduce-op8", "MoeDistributeDispatch", "AllReduce-op7", "AllReduce-op8"),
    ]
    assert calls[0]["args"]["fullname"] == "hcom_allReduce__1"
    assert summary["op_exe_times"] == 8
    kinds = open_run(tmp_path, use_store=False).table("kernels").collect()["kind"]
    assert Counter(kinds) == {"compute": 6, "memory": 2, "communication": 2}


@pytest.mark.parametrize(("kind", "device"), [("cpu", None), ("gpu", "cuda")])
def test_other_devices_have_their_own_files(tmp_path: Path, kind: str, device: str | None) -> None:
    run = ascend_run()
    tables = {name: run.table(name).collect().drop("rank") for name in ("ranks", "steps", "kernels")}
    tables["ranks"] = tables["ranks"].with_columns(device_kind=pl.lit(device, pl.String), rank=pl.lit(0, pl.Int32))
    if device is None:
        del tables["kernels"]

    events, _ = made(Run.from_frames({0: tables}), tmp_path, kind)

    assert {event["pid"] for event in events if event["ph"] == "X"} <= {0, 12000, 13000}


def test_the_timeline_of_a_classic_profile_is_the_recorded_one(shared: Path, tmp_path: Path) -> None:
    source = shared / "data/mindspore/synthetic_dp4"
    made_of = open_run(source, use_store=False)
    export_run(made_of, tmp_path, "classic", steps="1-8")  # without a choice, files are copied

    for rank in range(4):
        name = f"profiler/ascend_timeline_display_{rank}.json"
        first, again = (json.loads((parent / name).read_text()) for parent in (source, tmp_path))
        assert _work(again, (rank, 9000)) == _work(first, (rank, 9000))
        calls = [
            [event["name"] for event in events if event["pid"] == 10000 and "dur" in event] for events in (first, again)
        ]
        assert Counter(calls[0]) == Counter(calls[1])  # the step trace, which counts, has other times of these
        golden = json.loads((shared / f"golden/mindinsight/synthetic_dp4/timeline_summary_dev{rank}.json").read_text())
        summary = json.loads((tmp_path / f"profiler/ascend_timeline_summary_{rank}.json").read_text())
        figures = ("total_time", "num_of_streams", "num_of_ops", "op_exe_times")
        assert {name: summary[name] for name in figures} == {name: golden["response"][name] for name in figures}
        shown = json.loads((shared / f"golden/mindinsight/synthetic_dp4/timeline_scope0_dev{rank}.json").read_text())
        assert _work(again, (rank,)) == _work(shown["response"], (rank,))


def _work(events: list[dict[str, Any]], processes: tuple[int, ...]) -> list[Any]:
    """The ranges of some processes without scopes, in order."""
    return sorted(
        (
            event["pid"],
            event["tid"],
            event["name"],
            round(event["ts"], 3),
            round(event["dur"], 3),
            str(sorted((event.get("args") or {}).items())),
        )
        for event in events
        if event["ph"] == "X" and event["pid"] in processes and event["tid"] != 100001
    )
