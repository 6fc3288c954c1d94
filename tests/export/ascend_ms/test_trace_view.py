"""The timeline: complete JSON within its limit, exact times, tracks with names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from exports import EPOCH_NS, LOADER, STEP_NS, export, host_run, output

from builders import make_run


def events(directory: Path) -> list[dict[str, Any]]:
    return json.loads((output(directory) / "trace_view.json").read_bytes())


def test_times_are_exact_texts_in_microseconds(tmp_path: Path) -> None:
    export(host_run(), tmp_path)

    timed = [event for event in events(tmp_path) if event["ph"] == "X"]
    assert all(
        re.fullmatch(r"\d+\.\d{3}", event["ts"]) and re.fullmatch(r"\d+\.\d{3}", event["dur"]) for event in timed
    )
    second = next(event for event in timed if event["name"] == "ProfilerStep#2")
    start = EPOCH_NS + STEP_NS
    assert second["ts"] == f"{start // 1000}.{start % 1000:03d}"
    assert second["dur"] == "10000.001"


def test_every_track_is_named_before_it_is_used(tmp_path: Path) -> None:
    export(host_run(), tmp_path)

    named: dict[str, set[Any]] = {"process_name": set(), "thread_name": set()}
    for event in events(tmp_path):
        if event["ph"] == "M":
            named.setdefault(event["name"], set()).add(event["pid"] if "process" in event["name"] else _track(event))
        elif event["ph"] == "X":
            assert event["pid"] in named["process_name"]
            assert _track(event) in named["thread_name"]


def _track(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["tid"]


def test_steps_marks_operators_calls_and_overlap_are_there(tmp_path: Path) -> None:
    export(host_run(steps=1), tmp_path)

    names = {event["name"] for event in events(tmp_path)}
    assert {"ProfilerStep#1", LOADER, "aten::mm", "Computing", "Communication", "Free", "fwdbwd"} <= names
    assert any(name.startswith("hcom_allReduce__") for name in names)


def test_kernels_lie_on_their_streams(tmp_path: Path) -> None:
    export(make_run(ranks=1), tmp_path)

    kernels = [event for event in events(tmp_path) if event["name"] == "gemm"]
    assert [kernel["args"]["Stream Id"] for kernel in kernels] == [7, 7, 7]
    labels = {event["args"]["labels"] for event in events(tmp_path) if event["name"] == "process_labels"}
    assert "GPU 0" in labels


@pytest.mark.parametrize("limit", [0, 2, 200, 1000, 3000])
def test_a_limit_leaves_whole_json_and_is_told(tmp_path: Path, limit: int) -> None:
    made = export(host_run(), tmp_path, timeline_limit_bytes=limit)[0]

    text = (output(tmp_path) / "trace_view.json").read_bytes()
    assert len(text) <= max(limit, 2)
    whole = export(host_run(), tmp_path / "whole")[0]
    assert len(json.loads(text)) < len(events(tmp_path / "whole"))
    assert "timeline_limit" in made.left_out["trace_view.json"]
    assert "trace_view.json" not in whole.left_out


def test_a_limit_cuts_operators_before_steps(tmp_path: Path) -> None:
    export(host_run(), tmp_path, timeline_limit_bytes=3000)

    names = {event["name"] for event in events(tmp_path)}
    assert {"ProfilerStep#1", "ProfilerStep#3"} <= names
    assert "aten::mm" not in names
