"""Operator windows of Ascend devices: exports of the device's own profiler in a recording."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import EPOCH_NS as ASCEND_NS
from ascend_files import rank_directory as written_by_hand
from ascend_files import write_communication, write_kernels, write_trace
from ascend_windows import STEPS, WRITERS, add_window, as_mindspore, bounds, make_raw, part, recording, whole_job
from polars.testing import assert_frame_equal
from test_agree import STEP_NS, job
from test_recording import read

from recordings import EPOCH_NS as RECORDED_NS
from recordings import MS, Raw
from stepscope import open_run
from stepscope.cli import main
from stepscope.errors import Unavailable
from traces import EPOCH_NS

QUESTIONS = ("breakdown", "idle")


def alone(directory: Path) -> Any:
    """What a window holds, read as the job that the device's profiler takes it for."""
    return open_run(directory, use_store=False)


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
@pytest.mark.parametrize("form", list(WRITERS))
def test_windows_have_the_rows_of_their_exports(tmp_path: Path, form: str, framework: str) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace, framework)
    windows = {0: (3, 4), 1: (5,)}
    directories = []
    for number, steps in windows.items():
        directories.append(add_window(raw, number, steps, WRITERS[form], part(trace, steps)))
        if framework == "mindspore":
            as_mindspore(directories[-1])

    tables, facts = read(raw)

    assert "issues" not in tables
    shown = tables["kernels"].drop("kernel", "correlation")
    expected = []
    for steps, directory in zip(windows.values(), directories, strict=True):
        own = alone(directory).table("kernels").collect().drop("rank", "kernel", "correlation")
        expected.append(own.with_columns(pl.col("step") + steps[0]))
    assert_frame_equal(shown, pl.concat(expected), check_column_order=False)
    assert shown["step"].value_counts(sort=False).sort("step").rows() == [(step, 6) for step in STEPS]
    assert shown["launch_start_ns"].null_count() == 0
    assert tables["kernels"]["correlation"].n_unique() == shown.height  # each window counts from 1
    assert tables["collectives"]["sequence"].to_list() == list(range(6))
    assert {name: facts[name] for name in ("rank", "world_size", "device_kind", "format")} == {
        "rank": 0,
        "world_size": 4,
        "device_kind": "npu",
        "format": "recording",
    }
    assert facts["framework"] == {"torch": "pytorch"}.get(framework, framework)


@pytest.mark.parametrize("form", list(WRITERS))
def test_marks_and_operators_stand_in_one_tree(tmp_path: Path, form: str) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    for number, steps in enumerate(((3, 4), (5,))):
        add_window(raw, number, steps, WRITERS[form], part(trace, steps))

    tables, _ = read(raw)

    slices = tables["slices"]
    named = slices.filter(pl.col("name").str.starts_with("ProfilerStep#")).sort("start_ns")
    assert named["name"].to_list() == [f"ProfilerStep#{step}" for step in STEPS]
    parents = slices.select(parent="slice", parent_name="name")
    operators = slices.filter(pl.col("category") == "operator").join(parents, on="parent")
    assert set(operators["parent_name"]) == {"forward: Net", *named["name"]}
    steps = tables["steps"]
    assert steps.select("step", "window", "recorded").rows() == [(step, "device", None) for step in STEPS]
    assert steps["forward_start_ns"].to_list() == [EPOCH_NS + k * STEP_NS + 1000 for k in range(3)]
    assert tables["operators"]["step"].drop_nulls().len() == tables["operators"].height


@pytest.mark.parametrize("form", list(WRITERS))
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_a_step_are_those_of_each_export_by_itself(tmp_path: Path, form: str, question: str) -> None:
    windows = ((3, 4), (5,))
    raws = whole_job(tmp_path / "job", WRITERS[form], windows)
    run = open_run(tmp_path / "job", use_store=False)
    answer = run.analyse(question)
    assert [rank.rank for rank in run.ranks] == [0, 1, 2, 3]

    for number, steps in enumerate(windows):
        for rank, raw in enumerate(raws):
            own = alone(raw.directory / "windows" / f"{number:06d}").analyse(question)
            own = own.with_columns(pl.col("step") + steps[0])
            shown = answer.filter((pl.col("rank") == rank) & pl.col("step").is_in(steps))
            assert_frame_equal(shown, own)


@pytest.mark.parametrize("form", list(WRITERS))
def test_windows_without_steps_of_their_own_take_those_of_the_marks(tmp_path: Path, form: str) -> None:
    trace = job()[1]
    raw = recording(tmp_path / "job", trace)
    for number, steps in enumerate(((3, 4), (5,))):
        add_window(raw, number, steps, WRITERS[form], part(trace, steps))
    bare = recording(tmp_path / "bare", trace)
    for number, steps in enumerate(((3, 4), (5,))):
        add_window(bare, number, steps, WRITERS[form], part(trace, steps, numbered=False))

    tables, _ = read(raw)
    others, _ = read(bare)

    for name in ("kernels", "steps", "collectives", "operators"):
        assert_frame_equal(tables[name], others[name])


@pytest.mark.parametrize("form", list(WRITERS))
@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_raw_data_is_told_with_the_command_that_exports_it(tmp_path: Path, form: str, framework: str) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "the job", trace, framework)
    add_window(raw, 0, (3, 4), WRITERS[form], part(trace, (3, 4)))
    directory = add_window(raw, 1, (5,), WRITERS[form], part(trace, (5,)))
    if framework == "mindspore":
        as_mindspore(directory)
    make_raw(directory)

    tables, _ = read(raw)

    told = tables["issues"].filter(pl.col("problem").str.starts_with("window 1")).row(0, named=True)
    assert (told["severity"], "was not exported" in told["problem"]) == ("warning", True)
    command = shlex.split(told["remedy"].partition("run: ")[2])
    module = {"torch": "torch_npu", "mindspore": "mindspore"}[framework]
    assert command[0:2] == ["python3", "-c"]
    assert f"from {module}.profiler.profiler import analyse" in command[2]
    assert Path(command[3]).resolve() == directory.resolve()
    steps = tables["steps"].select("step", "window", "recorded")
    assert steps.rows() == [(3, "device", True), (4, "device", True), (5, "host", False)]
    assert set(tables["kernels"]["step"]) == {3, 4}


def test_a_window_exported_later_makes_a_new_input(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    directory = add_window(raw, 0, STEPS, WRITERS["text"], trace)
    kept = tmp_path / "kept"
    shutil.copytree(directory, kept)
    make_raw(directory)
    with pytest.raises(Unavailable):
        open_run(raw.root).table("kernels")

    shutil.rmtree(directory)
    shutil.copytree(kept, directory)

    assert open_run(raw.root).table("kernels").collect().height == 18


def test_a_failed_export_that_was_made_good_is_read(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    raw.window(0, *bounds(STEPS), "ascend", {}, state="failed")
    WRITERS["db"](raw.directory / "windows" / "000000", trace)

    tables, _ = read(raw)

    assert tables["kernels"].height == 18


@pytest.mark.parametrize("form", list(WRITERS))
def test_a_cut_window_does_not_hide_the_others(tmp_path: Path, form: str) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    for number, step in enumerate(STEPS):
        add_window(raw, number, (step,), WRITERS[form], part(trace, (step,)))
    output = next((raw.directory / "windows" / "000001").glob("*/ASCEND_PROFILER_OUTPUT"))
    for file in output.iterdir():
        file.write_bytes(file.read_bytes()[:1] if file.suffix == ".csv" else file.read_bytes()[:90])

    tables, _ = read(raw)

    told = tables["issues"].filter(pl.col("file").str.contains("000001"))
    assert "error" in set(told["severity"])
    steps = tables["steps"].select("step", "window", "recorded")
    assert steps.rows() == [(3, "device", True), (4, "host", False), (5, "device", True)]
    kernels = tables["kernels"]
    assert sorted(kernels["step"].unique().to_list()) == [3, 5]
    assert kernels.height == 12


def test_a_half_of_a_trace_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    for number, steps in enumerate(((3, 4), (5,))):
        add_window(raw, number, steps, WRITERS["text"], part(trace, steps))
    view = next((raw.directory / "windows" / "000000").glob("*/*/trace_view.json"))
    view.write_text(view.read_text()[: view.stat().st_size * 2 // 3])

    tables, _ = read(raw)

    assert tables["kernels"].filter(pl.col("step") == 5).height == 6
    assert tables["issues"].filter(pl.col("file").str.ends_with("trace_view.json")).height


def test_a_window_of_another_time_is_left_out(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    add_window(raw, 0, (3, 4), WRITERS["db"], part(trace, (3, 4)))
    add_window(raw, 1, (5,), WRITERS["db"], part(trace, (5,)).shifted(3_600_000 * MS))

    tables, _ = read(raw)

    assert tables["kernels"].height == 12
    problems = tables["issues"].filter(pl.col("severity") == "error")["problem"].to_list()
    assert ["of another time than window 1" in problem for problem in problems] == [True]


def test_all_times_are_of_the_clock_of_rank_0(tmp_path: Path) -> None:
    plain, late = (recording(tmp_path / name, job()[2], offset_ns=ns) for name, ns in (("a", 0), ("b", 5 * MS)))
    for raw in (plain, late):
        output = add_window(raw, 0, STEPS, WRITERS["text"], job()[2])
        arrows = [{"ph": kind, "cat": "async_task_queue", "id": 7, "name": "a", "pid": 4242, "tid": 1} for kind in "sf"]
        view = next(output.glob("*/*/trace_view.json"))
        at = f"{EPOCH_NS // 1000 + 20}.000"
        view.write_text(json.dumps([*json.loads(view.read_text()), *(arrow | {"ts": at} for arrow in arrows)]))

    (tables, _), (moved, facts) = read(plain), read(late)

    assert facts["clock_offset_ns"] == 5 * MS
    for name, columns in {
        "kernels": ("start_ns", "launch_start_ns", "launch_end_ns"),
        "slices": ("start_ns",),
        "operators": ("start_ns",),
        "collectives": ("start_ns",),
        "steps": ("start_ns", "end_ns", "window_start_ns", "window_end_ns", "forward_start_ns"),
    }.items():
        assert_frame_equal(tables[name].with_columns(pl.col(*columns) + 5 * MS), moved[name])


def test_calls_outside_of_all_windows_come_from_the_marks(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    raw.describe(groups=[{"group": "0", "name": "default_pg", "members": [0, 1, 2, 3]}])
    add_window(raw, 0, (4,), WRITERS["db"], part(trace, (4,)))
    for number, span in trace.steps:
        start = span.start_ns - RECORDED_NS
        detail = {"group": "0", "size_bytes": 4096, "group_size": 4}
        raw.mark("collective", "all_reduce", start + 1000, start + 2000, number, detail)

    tables, _ = read(raw)

    calls = tables["collectives"].select("step", "on_device", "sequence", "size_bytes")
    assert calls.rows() == [(3, False, 0, 4096), (4, True, 0, 4096), (4, True, 1, 4096), (5, False, 1, 4096)]
    assert tables["collectives"]["collective"].to_list() == [0, 1, 2, 3]
    assert sorted(tables["groups"]["name"]) == ["default_pg", "dp"]


def hand_written(tmp_path: Path) -> tuple[Raw, Path]:
    """Two windows with the same export, of two steps of 10 ms, and the second 100 ms later; and one of the exports."""
    raw = Raw(tmp_path / "job", about={"device_kind": "npu"})
    for number in range(2):
        start = ASCEND_NS + number * 100 * MS - RECORDED_NS
        raw.window(number, start, start + 20 * MS, "ascend", {})
        for step in range(2):
            at = start + step * 10 * MS
            raw.mark("step", str(2 * number + step + 1), at, at + 10 * MS, 2 * number + step + 1)
        output = written_by_hand(raw.directory / "windows" / f"{number:06d}")
        write_kernels(output)
        write_trace(output)
        write_communication(output)
        for file in output.iterdir():
            file.write_text(file.read_text().replace("17600000000", f"1760000000{number}"))
    return raw, output


def test_calls_of_one_name_in_two_windows_stay_two(tmp_path: Path) -> None:
    """Each window names its calls anew, so all of them have the names of those of the first."""
    raw, _ = hand_written(tmp_path)

    tables, _ = read(raw)

    calls = tables["collectives"]
    assert calls.select("step", "sequence", "size_bytes").rows() == [
        (1, 0, 2000),
        (2, 1, 2000),
        (3, 2, 2000),
        (4, 3, 2000),
    ]
    assert calls["wait_ns"].to_list() == [290_000] * 4
    assert tables["transports"].select("step", "transport", "size_bytes").rows() == [
        (step, "SDMA", 4_000_000) for step in range(1, 5)
    ]
    links = tables["links"].filter(pl.col("name").is_null()).sort("step")
    assert links.select("step", "source", "destination").rows() == [(step, 4, 7) for step in range(1, 5)]
    flows = tables["flows"]
    assert flows.select("kind", "flow").is_duplicated().sum() == 0
    assert flows.height == 8


def test_an_answer_is_given_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for raw in whole_job(tmp_path / "job", WRITERS["text"], ((3, 4), (5,))):
        last = raw.directory / "windows" / "000001"
        make_raw(last) if raw.rank == 3 else None

    assert main(["analyze", str(tmp_path / "job"), "--json", "-"]) == 0

    answer = json.loads(capfd.readouterr().out)
    assert {finding["rule"] for finding in answer["findings"]} >= {"slow-rank", "exposed-communication"}
    assert [(row["rank"], row["kind"]) for row in answer["slow_ranks"]] == [(2, "computing"), (1, "dispatch")]
    told = [issue["problem"] for issue in answer["issues"]]
    assert ["was not exported" in problem for problem in told] == [True, False]
    assert "in 1 of 3 steps" in told[1]


@pytest.mark.parametrize("form", ["text_8rank", "db_8rank"])
def test_a_generated_job_is_the_same_in_a_recording(shared: Path, tmp_path: Path, form: str) -> None:
    folder = shared / "data" / "ascend" / form
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    own = open_run(folder, use_store=False)
    for rank in own.ranks:
        steps = rank.table("steps").collect()
        raw = Raw(tmp_path / "job", rank=rank.rank, pid=rank.rank + 1, about={"device_kind": "npu", "world_size": 8})
        for step, start, end in steps.select("step", "start_ns", "end_ns").iter_rows():
            raw.mark("step", str(step), start - RECORDED_NS, end - RECORDED_NS, step)
        raw.window(0, steps["start_ns"][0] - RECORDED_NS, steps["end_ns"][-1] - RECORDED_NS, "ascend", {})
        directory = next(folder.glob(f"*_{430000 + rank.rank}_*_ascend_pt"))
        shutil.copytree(directory, raw.directory / "windows" / "000000" / directory.name)
    run = open_run(tmp_path / "job", use_store=False)

    tables = ("kernels", "kernel_counters", "collectives", "links", "transports", "memory_curve", "counters")
    for name in (*tables, "step_totals", "operator_totals", "groups", "steps"):
        assert_frame_equal(run.table(name).collect(), own.table(name).collect())
    for question in ("breakdown", "communication", "idle", "slow_ranks", "segments"):
        assert_frame_equal(run.analyse(question), own.analyse(question))
