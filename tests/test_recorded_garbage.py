"""Garbage collections that the recorder marked: what they become, and what is said of the time that they cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from recordings import MS, MindSporeRun, Raw, op
from stepscope import open_run
from stepscope.advice import worded
from stepscope.report.answers import answers

STEPS = 40
Collection = Callable[[int], tuple[int, int] | None]
"""Step to when a collection began in it, and when it was over."""


def every_fifth(begin_ns: int, length_ns: int) -> Collection:
    return lambda step: (begin_ns, begin_ns + length_ns) if step % 5 == 0 else None


def record(root: Path, collection: Collection, *, framework: str = "torch", extra: list[Any] | None = None) -> Raw:
    """A job on a CPU: each step loads for 1 ms, computes for 30 ms on thread 1, and for 8 ms more at its end.

    Args:
        root: Where.
        collection: Its collections, relative to the end of the loading; the first operator ends 30 ms after that,
            and the second begins when the collection is over.
        framework: What computes.
        extra: Takes the events of the window.
    """
    raw = Raw(root, about={"framework": framework})
    now, events, runs = 0, [] if extra is None else extra, []
    for step in range(1, STEPS + 1):
        begin, loaded = now, now + MS
        first, last = collection(step) or (30 * MS, 30 * MS)
        rest = loaded + max(last, 30 * MS)
        now = rest + 8 * MS
        raw.mark("data", "Loader", begin, loaded, step)
        raw.mark("forward", "Net", loaded, now, step)
        raw.mark("step", str(step), begin, now, step)
        if last > first:
            raw.mark("gc", "generation 2", loaded + first, loaded + last, step)
        events += [op("aten::mm", loaded / 1000, 30_000), op("aten::add", rest / 1000, 8_000)]
        runs += [MindSporeRun("Default/MatMul-op1", loaded, 30 * MS), MindSporeRun("Default/Add-op2", rest, 8 * MS)]
    if framework == "torch":
        raw.kineto(0, 0, now, events)
    else:
        raw.mindspore(0, 0, now, runs)
    return raw.describe(spans=[[raw_ns := 1_790_000_000_000_000_000, raw_ns + now]])


def idle(raw: Raw) -> dict[str, int]:
    """Idle time by cause."""
    found = open_run(raw.root, use_store=False).analyse("idle").group_by("cause").agg(pl.col("idle_ns").sum())
    return {cause: ns for cause, ns in found.rows() if ns}


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_collections_every_fifth_step_are_a_finding(tmp_path: Path, framework: str) -> None:
    raw = record(tmp_path, every_fifth(30 * MS, 60 * MS), framework=framework)

    (finding,) = answers(open_run(raw.root, use_store=False)).findings

    lost, recorded = 8 * 60, 39 * 39 + 8 * 60  # ms; the first step does not count
    assert finding.rule == "garbage-collection"
    assert finding.evidence["lost_ns"] == lost * MS
    assert finding.evidence["period"] == 5
    assert finding.saving_ratio == pytest.approx(lost / recorded, rel=0.03)  # of all steps, as a replay shows
    assert worded(finding).summary == (
        f"Rank 0 is stopped by Python's garbage collection: {lost} ms of 2.00 s ({lost / recorded:.0%}), most of "
        "it in every 5th step."
    )
    assert "gc.collect()" in worded(finding).action
    assert "gc.freeze()" in worded(finding).action


def test_collections_in_every_step_are_a_finding(tmp_path: Path) -> None:
    raw = record(tmp_path, lambda _: (30 * MS, 50 * MS))

    (finding,) = answers(open_run(raw.root, use_store=False)).findings

    assert finding.rule == "garbage-collection"
    assert finding.saving_ratio == pytest.approx(20 / 59)
    assert "20.0 ms of a 59.0 ms step (34%)" in worded(finding).summary


def test_few_short_collections_are_none(tmp_path: Path) -> None:
    raw = record(tmp_path, every_fifth(30 * MS, 2 * MS))

    assert answers(open_run(raw.root, use_store=False)).findings == []
    assert idle(raw) == {"data_loading": STEPS * MS, "garbage_collection": 8 * 2 * MS}


def test_a_collection_is_a_range_of_its_thread_and_no_operator(tmp_path: Path) -> None:
    raw = record(tmp_path, every_fifth(10 * MS, 5 * MS))
    run = open_run(raw.root, use_store=False)

    ranges = run.table("slices").filter(pl.col("category") == "gc").collect()
    assert ranges.select("name", "thread", "step", "duration_ns").unique(maintain_order=True).rows() == [
        ("gc: generation 2", "1", step, 5 * MS) for step in range(5, STEPS + 1, 5)
    ]
    assert run.table("operators").select(pl.col("name").unique().sort()).collect()["name"].to_list() == [
        "aten::add",
        "aten::mm",
    ]
    around = run.table("operators").filter(pl.col("step") == 5, pl.col("name") == "aten::mm").collect()
    assert around.select("duration_ns", "self_ns").row(0) == (30 * MS, 25 * MS)
    phases = run.analyse("step_trace").filter(pl.col("step") == 5)
    assert phases["forward_ns"].item() == 38 * MS


def test_an_operator_computes_nothing_while_its_thread_collects(tmp_path: Path) -> None:
    raw = record(tmp_path, every_fifth(10 * MS, 5 * MS))
    assert idle(raw)["garbage_collection"] == 8 * 5 * MS


def test_operators_of_other_threads_go_on(tmp_path: Path) -> None:
    events = [op("aten::mm", start / 1000, 30_000, thread=2) for start in (MS, 40 * MS)]
    raw = record(tmp_path, lambda step: (10 * MS, 15 * MS) if step < 4 else None, extra=events)

    assert idle(raw)["garbage_collection"] == 5 * MS  # of the third step, where only one thread computes


def test_a_collection_while_a_batch_is_loaded_is_not_the_loaders_matter(tmp_path: Path) -> None:
    raw = record(tmp_path, lambda _: None)
    for step in range(1, STEPS + 1):
        begin = (step - 1) * 39 * MS
        raw.mark("gc", "generation 2", begin, begin + MS // 2, step)

    assert idle(raw) == {"data_loading": STEPS * MS // 2, "garbage_collection": STEPS * MS // 2}


def test_without_operators_phases_compute_nothing_while_python_collects(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"options": {"op_time": False}})
    for step in range(1, 11):
        begin = (step - 1) * 20 * MS
        raw.mark("forward", "Net", begin, begin + 20 * MS, step).mark("step", str(step), begin, begin + 20 * MS, step)
        raw.mark("gc", "generation 2", begin + 5 * MS, begin + 9 * MS, step)

    assert idle(raw) == {"garbage_collection": 10 * 4 * MS}


def test_a_collection_that_the_window_shows_counts_once(tmp_path: Path) -> None:
    own = [op("Python GC", 400, 200, "python_gc"), op("Python GC", 2_400, 200, "python_gc", thread=3)]
    raw = Raw(tmp_path).steps((1, 0, 2 * MS), (2, 2 * MS, 4 * MS))
    raw.kineto(0, 0, 4 * MS, [op("aten::mm", 0, 300), op("aten::mm", 3_000, 500), *own])
    raw.mark("gc", "generation 2", 399_000, 601_000, 1).mark("gc", "generation 2", 2_600_000, 2_700_000, 2)

    ranges = open_run(raw.root, use_store=False).table("slices").filter(pl.col("category") == "gc").collect()

    assert ranges.sort("start_ns").select("name", "duration_ns").rows() == [
        ("Python GC", 200_000),
        ("Python GC", 200_000),
        ("gc: generation 2", 100_000),
    ]


def test_collections_alone_are_no_recording_of_training(tmp_path: Path) -> None:
    raw = Raw(tmp_path).mark("gc", "generation 2", 0, MS)
    issues = open_run(raw.root, use_store=False).issues
    assert "nothing was recorded" in issues.filter(severity="error")["problem"].item()
