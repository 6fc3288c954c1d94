"""MindSpore's runtime profiler."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import stepscope
from parts import taken
from stepscope.errors import UnreadableInput
from stepscope.sources.discover import discover
from stepscope.sources.runtime_profiler import RuntimeProfilerSource
from stepscope.sources.runtime_profiler import events as events_module
from stepscope.store import MemorySink

T0 = 1_795_228_705_000_000_000
STAMP = "1795228705585228282"
DETAIL, JSON, SUMMARY = (
    f"RuntimeProfiler{name}" for name in (f"Detail{STAMP}.csv", f"Json{STAMP}.json", f"Summary{STAMP}.csv")
)
Issues = list[tuple[str, str]]


def event(start: int, length: int, what: str = "KernelLaunch", operator: str = "MatMul", thread: int = 7) -> str:
    """A line of an event."""
    module = "Kernel" if what == "KernelLaunch" else "RuntimeFramework"
    times = f"start_time:{T0 + start}, end_time:{T0 + start + length}, dur_time:,{length},ns"
    return f"module:{module}, event:{what}, op:{operator}, {times}, tid:{thread}, pid:42\n"


def step(number: int, length: int, *events: str) -> str:
    """The lines of a step."""
    return f"[Step:{number} step_time:{length}ns, module_total_time:1ns]\n" + "".join(events) + "\n"


TEXT = (
    step(1, 1000, event(500, 300, "RunGraph", "graph_0"), event(550, 100), event(700, 50, operator="a, op:b"))
    + event(100, 800, "Default", "").replace("module:RuntimeFramework", "stage:RunGraph")
    + step(2, 400, event(1200, 100, thread=8))
)


def read(directory: Path, texts: dict[str, str | bytes]) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables of the only input of a directory with these files, and its issues."""
    folder = directory / "rank_3"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    found = RuntimeProfilerSource().find(folder, sorted(texts))
    assert found is not None
    return taken(lambda sink: RuntimeProfilerSource().read(found.inputs[0], sink))


def test_events_have_their_step_module_and_thread(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {DETAIL: TEXT, SUMMARY: "[Step:1, step_time:1000ns]\n"})

    at = pl.col("start_ns") - T0
    rows = tables["host_events"].select("step", at, "duration_ns", "module", "event", "stage", "thread", "process")
    assert rows.rows() == [
        (1, 100, 800, "RunGraph", "Default", None, 7, 42),
        (1, 500, 300, "RuntimeFramework", "RunGraph", "graph_0", 7, 42),
        (1, 550, 100, "Kernel", "KernelLaunch", "MatMul", 7, 42),
        (1, 700, 50, "Kernel", "KernelLaunch", "a, op:b", 7, 42),
        (2, 1200, 100, "Kernel", "KernelLaunch", "MatMul", 8, 42),
    ]
    assert issues == []


def test_launches_of_kernels_are_operators_within_what_called_them(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, {DETAIL: TEXT})

    assert tables["operators"].select("slice", "name", "type", "duration_ns", "step").rows() == [
        (2, "MatMul", "MatMul", 100, 1),
        (3, "a, op:b", "a, op:b", 50, 1),
        (4, "MatMul", "MatMul", 100, 2),
    ]
    slices = tables["slices"].select("slice", "name", "parent", "depth", "self_ns")
    assert slices.rows()[:3] == [
        (0, "RunGraph::Default::", None, 0, 500),
        (1, "RuntimeFramework::RunGraph::graph_0", 0, 1, 150),
        (2, "MatMul", 1, 2, 100),
    ]


def test_a_step_ends_with_its_last_event_and_is_as_long_as_stated(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, {DETAIL: TEXT})

    times = (pl.col("start_ns") - T0, pl.col("end_ns") - T0)
    assert tables["steps"].select("step", *times, "window").rows() == [(1, -100, 900, "host"), (2, 900, 1300, "host")]


def test_a_length_that_reaches_back_into_the_step_before_is_not_believed(tmp_path: Path) -> None:
    text = step(1, 100, event(0, 100)) + step(2, 900, event(500, 100)) + "[Step:3 step_time:?]\n" + event(900, 10)

    tables, _ = read(tmp_path, {DETAIL: text})

    assert tables["steps"].select(pl.col("start_ns", "end_ns") - T0).rows() == [(0, 100), (500, 600), (900, 910)]


def test_the_rank_is_that_of_the_folder_and_the_recording_begins_with_its_first_step(tmp_path: Path) -> None:
    read(tmp_path, {DETAIL: TEXT})

    known = stepscope.open_run(tmp_path).table("ranks").collect().row(0, named=True)

    assert (known["rank"], known["process"], known["framework"]) == (3, 42, "mindspore")
    assert (known["start_ns"] - T0, known["end_ns"] - T0) == (-100, 1300)


def test_files_of_several_processes_are_recordings_of_their_own(tmp_path: Path) -> None:
    read(tmp_path, {DETAIL: TEXT, DETAIL.replace(STAMP, "99"): TEXT})

    found = discover([tmp_path])

    assert [item.label for item in found.inputs] == ["99", STAMP]
    assert found.problems == []


def test_the_json_file_counts_where_the_detail_is_missing(tmp_path: Path) -> None:
    launch = {"name": "Kernel::KernelLaunch::Mat::Mul", "ph": "X", "pid": "42", "tid": "7", "ts": T0 / 1e3, "dur": 0.5}

    tables, issues = read(tmp_path, {JSON: json.dumps([launch])})

    rows = tables["host_events"].select("module", "event", "stage", "duration_ns", "step").rows()
    assert rows == [("Kernel", "KernelLaunch", "Mat::Mul", 500, None)]
    assert "steps" not in tables
    assert issues == [("warning", "rank_3")]


def test_parts_of_a_large_file_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = read(tmp_path, {DETAIL: TEXT})
    monkeypatch.setattr(events_module, "_BLOCK_BYTES", 97)

    parts, issues = read(tmp_path / "again", {DETAIL: TEXT})

    for name in ("host_events", "operators", "steps"):
        found, expected = (tables[name].drop("slice", strict=False).sort("start_ns") for tables in (parts, whole))
        assert found.equals(expected)
    assert parts["slices"]["slice"].is_unique().all()
    assert issues == []


def test_a_detail_is_known_by_its_first_lines_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "copied.txt").write_text(TEXT)

    (item,) = discover([tmp_path / "copied.txt"]).inputs

    sink = MemorySink(item.source)
    RuntimeProfilerSource().read(item, sink)
    assert sink.close()["operators"].height == 3
    assert sink.facts["rank"] is None


@pytest.mark.parametrize(
    ("text", "events", "issues"),
    [
        (TEXT[:-30], 4, [("warning", DETAIL)]),
        (TEXT + "module:, what is this\n", 5, [("warning", DETAIL)]),
        (TEXT.replace("tid:8", "tid:x"), 4, [("warning", DETAIL)]),
        (TEXT.replace(f"end_time:{T0 + 1300}", f"end_time:{T0}"), 4, [("warning", DETAIL)]),
        (TEXT + event(10**18, 5), 5, [("warning", DETAIL)]),
        (TEXT.replace(f"end_time:{T0 + 1300}", f"end_time:{T0 + 10**18}"), 4, [("warning", DETAIL)]),
        (event(1, 2) + TEXT, 6, []),
    ],
)
def test_damage_costs_lines_and_is_told(tmp_path: Path, text: str, events: int, issues: Issues) -> None:
    tables, told = read(tmp_path, {DETAIL: text})

    assert tables["host_events"].height == events
    assert told == issues


@pytest.mark.parametrize("texts", [{DETAIL: ""}, {DETAIL: "op_type,total\nAdd,1\n"}, {JSON: "[]"}, {JSON: "[" * 9000}])
def test_a_file_without_any_event_is_told(tmp_path: Path, texts: dict[str, str | bytes]) -> None:
    with pytest.raises(UnreadableInput):
        read(tmp_path, texts)


def test_a_summary_alone_is_no_recording(tmp_path: Path) -> None:
    assert RuntimeProfilerSource().find(tmp_path, [SUMMARY]) is None


def test_a_real_recording_is_read_whole_and_its_first_step_begins_when_it_was_opened(shared: Path) -> None:
    directory = shared / "data/mindspore_profiles/2.10.0-runtime_profiler_graph"
    (file,) = (directory / "rank_0").glob("*Detail*")
    opened_ns = int(file.stem.removeprefix("RuntimeProfilerDetail"))
    run = stepscope.open_run(directory)

    assert run.issues.is_empty()
    assert run.steps == list(range(1, 11))
    steps = run.table("steps").collect().sort("step")
    assert 0 <= steps["start_ns"][0] - opened_ns < 1_000_000
    assert (steps["start_ns"][1:] >= steps["end_ns"][:-1]).all()
    assert run.table("operators").collect().height == 170
    lines = file.read_text().splitlines()
    assert run.table("host_events").collect().height == sum(line.startswith(("module:", "stage:")) for line in lines)


def test_parents_are_numbered_on_from_part_to_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_BLOCK_BYTES", 97)
    steps = [step(k, 400, event(1000 * k, 300, "RunGraph", "graph_0"), event(1000 * k + 50, 100)) for k in (1, 2, 3)]

    tables, _ = read(tmp_path, {DETAIL: "".join(steps)})

    slices = tables["slices"].sort("start_ns")
    assert slices["slice"].n_unique() == 6
    assert slices["parent"].to_list()[1::2] == slices["slice"].to_list()[::2]


def test_a_launch_of_no_operator_is_none_and_the_first_length_of_a_step_counts(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, {DETAIL: step(1, 700, event(500, 100, operator=""), event(600, 100)) + step(1, 300)})

    assert tables["operators"]["name"].to_list() == ["MatMul"]
    assert tables["steps"].select(pl.col("end_ns") - pl.col("start_ns")).item() == 700
