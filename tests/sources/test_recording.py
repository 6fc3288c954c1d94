"""Raw recordings of the Profiler become tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from comparable import comparable
from polars.testing import assert_frame_equal
from test_kineto import Tables
from test_kineto_segments import messy_events

from recordings import EPOCH_NS, MS, Raw, op
from stepscope.errors import UnreadableInput
from stepscope.sources.discover import discover
from stepscope.sources.recording import RecordingSource
from stepscope.store import MemorySink


def read(raw: Raw) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Tables and facts of one recording, found as a user finds it."""
    found = discover([raw.root])
    assert found.problems == []
    sink = MemorySink(RecordingSource.name)
    RecordingSource().read(next(item for item in found.inputs if item.path == raw.directory), sink)
    return sink.close(), sink.facts


def test_steps_and_phases_come_from_the_marks(tmp_path: Path) -> None:
    raw = Raw(tmp_path, rank=2, about={"world_size": 4, "backend": "gloo", "mode": "eager"})
    raw.steps((1, 0, 10 * MS), (2, 10 * MS, 20 * MS)).mark("data", "_SingleProcessDataLoaderIter", 0, 2 * MS, 1)
    raw.mark("forward", "Net", 2 * MS, 5 * MS, 1).mark("backward", "", 5 * MS, 8 * MS, 1)
    raw.mark("range", "ProfilerStep#7", 12 * MS, 13 * MS, 2)

    tables, facts = read(raw)

    steps = tables["steps"].select("step", "window", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns")
    assert steps.rows() == [
        (1, "host", EPOCH_NS, EPOCH_NS + 10 * MS, EPOCH_NS + 2 * MS, EPOCH_NS + 8 * MS),
        (2, "host", EPOCH_NS + 10 * MS, EPOCH_NS + 20 * MS, None, None),
    ]
    names = (
        tables["slices"].sort("start_ns", "duration_ns", descending=[False, True]).select("name", "category", "step")
    )
    assert names.rows() == [
        ("ProfilerStep#1", "annotation", 1),
        ("data: _SingleProcessDataLoaderIter", "annotation", 1),
        ("forward: Net", "annotation", 1),
        ("backward", "annotation", 1),
        ("ProfilerStep#2", "annotation", 2),
        ("ProfilerStep 7", "annotation", 2),
    ]
    known = {"rank": 2, "rank_origin": "content", "world_size": 4, "framework": "pytorch", "format": "recording"}
    assert facts.items() >= (known | {"backend": "gloo", "mode": "eager"}).items()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_windows_give_the_rows_of_one_trace(tmp_path: Path, seed: int, count: int) -> None:
    """The same events, in one trace and shared out over windows with time bases of their own."""
    events = messy_events(seed)
    marked = [e for e in events if e["name"].startswith("ProfilerStep#")]
    others = [e for e in events if e not in marked]
    whole = tmp_path / "whole.json"
    base = {"schemaVersion": 1, "baseTimeNanoseconds": EPOCH_NS}
    annotated = [*others, *(e | {"pid": 100} for e in marked)]
    whole.write_text(json.dumps({**base, "traceEvents": annotated}))
    raw = Raw(tmp_path)
    for event in sorted(marked, key=lambda e: int(e["ts"])):
        number, start = int(event["name"].partition("#")[2]), event["ts"] * 1000
        raw.mark("step", str(number), start, start + event["dur"] * 1000, number, thread=event["tid"])
    launches = {e["args"].get("correlation"): e["ts"] for e in others if e.get("cat") == "cuda_runtime"}
    bounds = [k * 8000 // count for k in range(count + 1)]
    own = op("ProfilerStep#0", 0, 9, "user_annotation")
    for number in range(count):
        first, last = bounds[number], bounds[number + 1]
        part = [e for e in others if first <= min(_recorded_at(e, launches), 7999) < last]
        part.append(own | {"ts": first})
        raw.kineto(number, first * 1000, last * 1000, part, base_ns=first * 3000)

    got, _ = read(raw)

    ids = ("external_id", "correlation", "flow")  # counted anew by each window
    expected, got = _without(comparable(Tables(whole).frames), ids), _without(comparable(got), ids)
    for name in ("slices", "operators", "steps", "kernels", "memory_curve", "allocations", "stacks"):
        assert_frame_equal(got[name].select(expected[name].columns), expected[name])


def _recorded_at(event: dict[str, Any], launches: dict[int, int]) -> int:
    """Device work is in the window of its launch."""
    return launches.get(event["args"].get("correlation", 0), event["ts"]) if event["ph"] == "X" else event["ts"]


def _without(tables: dict[str, pl.DataFrame], columns: Sequence[str]) -> dict[str, pl.DataFrame]:
    return {n: t.drop(columns, strict=False) for n, t in tables.items()}


def test_ids_that_repeat_between_windows_stay_apart(tmp_path: Path) -> None:
    def part(start: int) -> list[dict[str, Any]]:
        launch = op("cudaLaunchKernel", start + 1, 1, "cuda_runtime", correlation=5, **{"External id": 9})
        arguments: dict[str, Any] = {"device": 0, "stream": 7, "correlation": 5, "External id": 9}
        return [op("aten::mm", start, 9, **{"External id": 9}), launch, op("k", start + 3, 4, "kernel", 7, **arguments)]

    raw = Raw(tmp_path).steps((1, 0, 100_000), (2, 100_000, 200_000))
    raw.kineto(0, 0, 100_000, part(10)).kineto(1, 100_000, 200_000, part(110), base_ns=50_000)

    tables, _ = read(raw)

    assert tables["kernels"]["step"].to_list() == [1, 2]
    assert tables["kernels"]["external_id"].to_list() == tables["operators"]["external_id"].to_list()
    assert tables["kernels"]["external_id"].n_unique() == tables["kernels"]["correlation"].n_unique() == 2
    assert (tables["kernels"]["launch_start_ns"] - EPOCH_NS).to_list() == [11_000, 111_000]
    assert tables["steps"]["window"].to_list() == ["device", "device"]


def test_the_clock_of_rank_0_is_used(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"clock": {"offset_ns": -5, "error_ns": 2, "method": "ping"}})
    raw.steps((1, 100, 200)).kineto(0, 0, 1000, [op("aten::mm", 0.1, 0.05)])
    raw.add("device", [EPOCH_NS + 150, 0, "power_w", 31.5])

    tables, facts = read(raw)

    assert tables["steps"]["start_ns"].item() == EPOCH_NS + 95
    assert tables["operators"]["start_ns"].item() == EPOCH_NS + 95
    assert tables["counters"]["time_ns"].item() == EPOCH_NS + 145
    assert (facts["clock_offset_ns"], facts["clock_error_ns"]) == (-5, 2)


def test_a_training_loop_that_is_entered_twice_counts_its_steps_on(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10), (2, 10, 20), (1, 30, 40), (2, 40, 50))

    tables, _ = read(raw)

    assert tables["steps"].select("step", pl.col("start_ns") - EPOCH_NS).rows() == [(1, 0), (2, 10), (3, 30), (4, 40)]
    assert tables["issues"]["severity"].to_list() == ["note"]


def test_a_newer_version_is_refused_with_a_remedy(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"version": 2})
    found = RecordingSource().find(raw.directory, ["recording.json"])
    assert found is not None
    item = found.inputs[0]

    with pytest.raises(UnreadableInput, match=r"version 2.*Update stepscope"):
        RecordingSource().read(item, MemorySink("recording"))


def test_what_was_never_stopped_is_read_and_noted(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"state": "recording", "spans": [[EPOCH_NS, None]], "problems": ["no NVML"]})
    raw.steps((1, 0, 10))
    (raw.directory / "windows" / "000000").mkdir(parents=True)  # not finished
    (raw.directory / "windows" / "000000" / "trace.json.gz").write_bytes(b"half")

    tables, _ = read(raw)

    assert tables["steps"].height == 1
    assert tables["issues"].select("severity").to_series().to_list() == ["note", "warning"]


def test_an_empty_recording_says_so(tmp_path: Path) -> None:
    raw = Raw(tmp_path)

    tables, facts = read(raw)

    assert tables.keys() == {"issues"}
    assert "nothing was recorded" in tables["issues"]["problem"].item()
    assert facts["start_ns"] == EPOCH_NS


def test_a_recording_without_steps_is_one_window(tmp_path: Path) -> None:
    raw = Raw(tmp_path).kineto(0, 0, 1000, [op("aten::mm", 1, 2), op("aten::mm", 5, 2)])

    tables, _ = read(raw)

    assert tables["steps"].select("step", "window").rows() == [(0, "recording")]


def test_the_files_of_a_recording_are_those_that_are_read(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10)).kineto(0, 0, 10, [op("aten::mm", 0, 1)])
    (raw.directory / "recorder.log").write_text("hello")
    (raw.directory / "windows" / "000001").mkdir()
    (raw.directory / "windows" / "000001" / "trace.json.gz").write_bytes(b"half")

    (item,) = discover([tmp_path]).inputs

    names = sorted(str(file.relative_to(raw.directory)) for file in item.files)
    assert names == ["marks.csv", "recording.json", "windows.csv", "windows/000000/trace.json.gz"]


def test_a_recording_json_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text('{"format": "tape"}')

    assert RecordingSource().find(tmp_path, ["recording.json"]) is None


def test_naming_the_recording_json_opens_the_recording(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10))

    assert [item.path for item in discover([raw.directory / "recording.json"]).inputs] == [raw.directory]


def test_steps_that_touch_do_not_overlap_because_the_clock_was_read_anew(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10 * MS), (2, 10 * MS - 800, 20 * MS), (3, 15 * MS, 30 * MS))

    tables, _ = read(raw)

    spans = tables["steps"].select(pl.col("start_ns", "end_ns") - EPOCH_NS).rows()
    assert spans == [(0, 10 * MS), (10 * MS, 15 * MS), (15 * MS, 30 * MS)]
    assert tables["issues"]["problem"].str.starts_with("1 steps overlap").to_list() == [True]


def test_no_device_window_reaches_into_steps_that_were_not_recorded(tmp_path: Path) -> None:
    def part(start: int) -> list[dict[str, Any]]:
        launch = op("cudaLaunchKernel", start + 1, 1, "cuda_runtime", correlation=start)
        return [launch, op("k", start + 3, 4, "kernel", 7, device=0, stream=7, correlation=start)]

    raw = Raw(tmp_path).steps(*((n, n * MS, (n + 1) * MS) for n in range(1, 7)))
    raw.kineto(0, MS, 3 * MS, [*part(1000), *part(2000)]).kineto(1, 5 * MS, 7 * MS, [*part(5000), *part(6000)])

    tables, _ = read(raw)

    columns = ("step", "window", "recorded", pl.col("window_start_ns", "window_end_ns") // 1000 - EPOCH_NS // 1000)
    assert tables["steps"].select(*columns).rows() == [
        (1, "device", True, 1003, 2003),
        (2, "device", True, 2003, 2007),
        (3, "host", False, 3000, 4000),
        (4, "host", False, 4000, 5000),
        (5, "device", True, 5003, 6003),
        (6, "device", True, 6003, 6007),
    ]
