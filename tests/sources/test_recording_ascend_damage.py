"""Operator windows of Ascend devices that are raw, cut, or of another time."""

from __future__ import annotations

import json
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from ascend_windows import STEPS, WRITERS, add_window, bounds, make_raw, part, recording, whole_job, windowed
from test_agree import job
from test_recording import read

from recordings import MS
from stepscope import open_run
from stepscope.cli import main
from stepscope.errors import Unavailable


@pytest.mark.parametrize("form", list(WRITERS))
@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_raw_data_is_told_with_the_command_that_exports_it(tmp_path: Path, form: str, framework: str) -> None:
    raw = windowed(tmp_path / "the job", job()[0], form, framework=framework)
    make_raw(raw.directory / "windows" / "000001")

    tables, _ = read(raw)

    told = tables["issues"].filter(pl.col("severity") == "warning").row(0, named=True)
    assert "not exported" in told["problem"]
    assert told["problem"].endswith("in 1 of the windows (1)")
    command = shlex.split(told["remedy"].partition("run: ")[2])
    assert {"torch": "torch_npu", "mindspore": "MindSpore"}[framework] in told["remedy"]
    assert command[:2] == ["python3", "-m"]
    assert find_spec(command[2]) is not None
    assert Path(command[3]).resolve() == raw.directory.resolve()
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


def test_windows_without_their_files_are_told(tmp_path: Path) -> None:
    raw = recording(tmp_path / "job", job()[0])
    add_window(raw, 0, (3,), None, job()[0])
    raw.window(1, *bounds((4,)), "ascend", {}, state="failed")
    shutil.rmtree(raw.directory / "windows" / "000000")

    tables, _ = read(raw)

    told = tables["issues"].select("severity", "problem").rows()
    assert told == [
        ("error", "window 0 holds no files of the device's profiler"),
        ("warning", "window 1 could not be recorded"),
    ]
    assert set(tables["steps"]["window"]) == {"host"}


@pytest.mark.parametrize("form", list(WRITERS))
def test_a_cut_window_does_not_hide_the_others(tmp_path: Path, form: str) -> None:
    raw = windowed(tmp_path / "job", job()[0], form, [(step,) for step in STEPS])
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
    raw = windowed(tmp_path / "job", job()[0], "text")
    view = next((raw.directory / "windows" / "000000").glob("*/*/trace_view.json"))
    view.write_text(view.read_text()[: view.stat().st_size * 2 // 3])

    tables, _ = read(raw)

    assert tables["kernels"].filter(pl.col("step") == 5).height == 6
    assert tables["issues"].filter(pl.col("file").str.ends_with("trace_view.json")).height


def test_a_window_of_another_time_is_left_out(tmp_path: Path) -> None:
    trace = job()[0]
    raw = windowed(tmp_path / "job", trace, "db", [(3, 4)])
    add_window(raw, 1, (5,), WRITERS["db"], part(trace, (5,)).shifted(3_600_000 * MS))

    tables, _ = read(raw)

    assert tables["kernels"].height == 12
    problems = tables["issues"].filter(pl.col("severity") == "error")["problem"].to_list()
    assert ["covers another time than window 1" in problem for problem in problems] == [True]


def test_an_answer_is_given_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for raw in whole_job(tmp_path / "job", "text"):
        last = raw.directory / "windows" / "000001"
        make_raw(last) if raw.rank == 3 else None

    assert main(["analyze", str(tmp_path / "job"), "--json", "-"]) == 0

    answer = json.loads(capfd.readouterr().out)
    assert {finding["rule"] for finding in answer["findings"]} >= {"slow-rank", "exposed-communication"}
    assert [(row["rank"], row["kind"]) for row in answer["slow_ranks"]] == [(2, "computing"), (1, "dispatch")]
    told = [issue["problem"] for issue in answer["issues"]]
    assert ["not exported" in problem for problem in told] == [True, False]
    assert "in 1 of 3 steps" in told[1]
