"""Operator windows of Ascend devices: exports of the device's own profiler in a recording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_windows import STEPS, WINDOWS, WRITERS, add_window, part, recording, whole_job, windowed
from polars.testing import assert_frame_equal
from test_agree import STEP_NS, job
from test_recording import read

from recordings import EPOCH_NS as RECORDED_NS
from recordings import MS, Raw
from stepscope import open_run
from stepscope.sources import spool
from stepscope.sources.ascend import timeline
from traces import EPOCH_NS

QUESTIONS = ("breakdown", "idle")


def alone(raw: Raw, window: int) -> Any:
    """What a window holds, read as the job that the device's profiler takes it for."""
    return open_run(raw.directory / "windows" / f"{window:06d}", use_store=False)


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
@pytest.mark.parametrize("form", list(WRITERS))
def test_windows_have_the_rows_of_their_exports(tmp_path: Path, form: str, framework: str) -> None:
    raw = windowed(tmp_path / "job", job()[0], form, framework=framework)

    tables, facts = read(raw)

    assert "issues" not in tables
    shown = tables["kernels"].drop("kernel", "correlation")
    expected = []
    for number, steps in enumerate(WINDOWS):
        own = alone(raw, number).table("kernels").collect().drop("rank", "kernel", "correlation")
        expected.append(own.with_columns(pl.col("step") + steps[0]))
    assert_frame_equal(shown, pl.concat(expected), check_column_order=False)
    assert shown["step"].value_counts(sort=False).sort("step").rows() == [(step, 6) for step in STEPS]
    assert shown["launch_start_ns"].null_count() == 0
    assert tables["kernels"]["correlation"].n_unique() == shown.height  # each window counts from 1
    assert tables["collectives"]["sequence"].to_list() == list(range(6))
    assert facts.items() >= {"rank": 0, "world_size": 4, "device_kind": "npu", "format": "recording"}.items()
    assert facts["framework"] == {"torch": "pytorch"}.get(framework, framework)


@pytest.mark.parametrize("form", list(WRITERS))
def test_marks_and_operators_stand_in_one_tree(tmp_path: Path, form: str) -> None:
    tables, _ = read(windowed(tmp_path / "job", job()[0], form))

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
    raws = whole_job(tmp_path / "job", form)
    run = open_run(tmp_path / "job", use_store=False)
    answer = run.analyse(question)
    assert [rank.rank for rank in run.ranks] == [0, 1, 2, 3]

    for number, steps in enumerate(WINDOWS):
        for rank, raw in enumerate(raws):
            own = alone(raw, number).analyse(question).with_columns(pl.col("step") + steps[0])
            shown = answer.filter((pl.col("rank") == rank) & pl.col("step").is_in(steps))
            assert_frame_equal(shown, own)


@pytest.mark.parametrize("form", list(WRITERS))
def test_rows_do_not_depend_on_what_is_read_at_a_time(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = windowed(tmp_path / "job", job()[0], form)
    whole, _ = read(raw)
    monkeypatch.setattr(timeline, "PIECE_ROWS", 6)
    monkeypatch.setattr(spool, "_SAMPLED", 1)

    pieces, _ = read(raw)

    for name in ("kernels", "steps", "collectives"):
        assert_frame_equal(pieces[name], whole[name])
    for name in ("slices", "operators"):
        columns = ["name", "start_ns", "duration_ns", "step", "self_ns"]
        assert_frame_equal(pieces[name].select(columns).sort(columns), whole[name].select(columns).sort(columns))


@pytest.mark.parametrize("form", list(WRITERS))
def test_windows_without_steps_of_their_own_take_those_of_the_marks(tmp_path: Path, form: str) -> None:
    tables, _ = read(windowed(tmp_path / "job", job()[1], form))
    others, _ = read(windowed(tmp_path / "bare", job()[1], form, numbered=False))

    for name in ("kernels", "steps", "collectives", "operators"):
        assert_frame_equal(tables[name], others[name])


def test_all_times_are_of_the_clock_of_rank_0(tmp_path: Path) -> None:
    plain, late = (recording(tmp_path / name, job()[2], offset_ns=ns) for name, ns in (("a", 0), ("b", 5 * MS)))
    for raw in (plain, late):
        output = add_window(raw, 0, STEPS, WRITERS["text"], job()[2])
        arrows = [{"ph": kind, "cat": "fwdbwd", "id": 7, "name": "a", "pid": 4242, "tid": 1} for kind in "sf"]
        view = next(output.glob("*/*/trace_view.json"))
        at = f"{EPOCH_NS // 1000 + 20}.000"
        view.write_text(json.dumps([*json.loads(view.read_text()), *(arrow | {"ts": at} for arrow in arrows)]))

    (tables, _), (moved, facts) = read(plain), read(late)

    assert facts["clock_offset_ns"] == 5 * MS
    for name, columns in {
        "kernels": ("start_ns", "launch_start_ns", "launch_end_ns"),
        "slices": ("start_ns",),
        "operators": ("start_ns",),
        "flows": ("from_ns", "to_ns"),
        "collectives": ("start_ns",),
        "steps": ("start_ns", "end_ns", "window_start_ns", "window_end_ns", "forward_start_ns"),
    }.items():
        assert_frame_equal(tables[name].with_columns(pl.col(*columns) + 5 * MS), moved[name])


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


def test_garbage_collections_are_marks_unless_a_window_shows_them(tmp_path: Path) -> None:
    trace = job()[0]
    raw = recording(tmp_path / "job", trace)
    directory = add_window(raw, 0, (3, 4), WRITERS["text"], part(trace, (3, 4)))
    (view,) = directory.glob("*/*/trace_view.json")
    events = json.loads(view.read_text())
    first = next(event for event in events if event.get("cat") == "cpu_op")
    events.append({**first, "cat": "GC", "name": "GC", "dur": 100.0, "args": {}})
    view.write_text(json.dumps(events))
    began_ns = next(span.start_ns for number, span in trace.steps if number == 3) - RECORDED_NS
    raw.mark("gc", "generation 2", began_ns - 1_000, began_ns + 101_000, 3)
    raw.mark("gc", "generation 2", began_ns + STEP_NS, began_ns + STEP_NS + 50_000, 4)

    tables, _ = read(raw)

    ranges = tables["slices"].filter(pl.col("category") == "gc").sort("start_ns")
    assert ranges.select("name", "process", "duration_ns", "step").rows() == [
        ("GC", "Python", 100_000, 3),
        ("gc: generation 2", "Python GC", 50_000, 4),
    ]
    assert "GC" not in tables["operators"]["name"].to_list()
