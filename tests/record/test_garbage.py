"""Garbage collections of Python are marked, and cost training nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorder_standin import StandIn

import stepscope
from stepscope.record import garbage, marks


@pytest.fixture(autouse=True)
def only_ours(unmarked_garbage: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every collection is worth a mark, and none comes but those that a test asks for."""
    monkeypatch.setattr(garbage, "LEAST_NS", 0)
    before = list(gc.callbacks)
    gc.disable()
    yield
    gc.enable()
    assert gc.callbacks == before


def marked(backend: StandIn) -> list[dict[str, str]]:
    return backend.rows(kind="gc")


def thresholds(monkeypatch: pytest.MonkeyPatch, **values: float) -> None:
    for name, value in values.items():
        monkeypatch.setattr(garbage, name, value)


def test_collections_are_marked_from_start_to_stop(backend: StandIn) -> None:
    profiler = backend.profiler(start_profile=False)
    backend.train(1)
    gc.collect()
    profiler.start()
    before = time.time_ns()
    backend.train(4, before=lambda number: gc.collect(2 if number == 2 else 0) if number in (2, 3) else None)
    after = time.time_ns()
    profiler.stop()
    gc.collect()

    found = marked(backend)
    assert [(row["name"], row["step"]) for row in found] == [("generation 2", "3"), ("generation 0", "4")]
    for row in found:
        assert before - 20e6 <= int(row["start_ns"]) <= int(row["end_ns"]) <= after + 20e6
        assert row["thread"] == str(threading.get_native_id())


def test_a_mark_is_as_long_as_its_collection(backend: StandIn) -> None:
    profiler = backend.profiler()
    taken: list[int] = []

    def collect(_: int) -> None:
        began_ns = time.perf_counter_ns()
        gc.collect()
        taken.append(time.perf_counter_ns() - began_ns)

    backend.train(3, before=collect)
    profiler.stop()

    lengths = [int(row["end_ns"]) - int(row["start_ns"]) for row in marked(backend)]
    assert len(lengths) == len(taken) == 3
    assert all(0 < length <= limit for length, limit in zip(lengths, taken, strict=True))
    assert any(length > 0.5 * limit for length, limit in zip(lengths, taken, strict=True))


def test_a_collection_on_another_thread_is_marked_there(backend: StandIn) -> None:
    profiler = backend.profiler()
    backend.train(1)
    collected, written = threading.Event(), threading.Event()

    def collect() -> None:
        gc.collect()
        collected.set()
        written.wait()  # threads are numbered while they live

    thread = threading.Thread(target=collect)
    thread.start()
    collected.wait()
    profiler.stop()
    written.set()
    thread.join()

    assert [row["thread"] for row in marked(backend)] == [str(thread.native_id)]


def test_a_collection_begins_no_step_and_ends_none(backend: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    shift_ns = marks.epoch_shift_ns()
    monkeypatch.setattr(marks, "epoch_shift_ns", lambda: shift_ns)  # the machine may adjust its clock between flushes
    profiler = backend.profiler()
    gc.collect()
    began_ns = time.time_ns()
    time.sleep(0.002)
    backend.train(1)
    gc.collect()
    backend.train(1)
    gc.collect()
    profiler.stop()

    steps = backend.rows(kind="step")
    assert [row["name"] for row in steps] == ["1", "2"]
    assert int(steps[0]["start_ns"]) > began_ns
    assert steps[1]["start_ns"] == steps[0]["end_ns"]
    assert len(marked(backend)) == 3


def test_a_collection_is_no_sign_of_training(backend: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", str(tmp_path))
    profiler = stepscope.record.profiler.EnvironmentProfiler()
    before = len(gc.callbacks)
    gc.collect()
    assert profiler.directory is None
    backend.train(1)
    assert len(gc.callbacks) == before + 1  # only what trains is called
    gc.collect()
    profiler.stop()

    assert [row["step"] for row in marked(backend)] == ["2"]


def test_between_cycles_of_a_schedule_none_is_marked(backend: StandIn) -> None:
    backend.record(5, before=lambda _: gc.collect(), steps=(2, 3))
    assert [row["step"] for row in marked(backend)] == ["2", "3"]


def test_short_collections_are_summed_up(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    thresholds(monkeypatch, LEAST_NS=10**12, LONG_NS=10**12, REPORTED_RATIO=0.0)
    backend.record(4, before=lambda _: gc.collect())

    assert marked(backend) == []
    assert "4 short Python garbage collections (the longest took " in caplog.text


def test_little_time_in_short_collections_is_not_reported(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    thresholds(monkeypatch, LEAST_NS=10**12, LONG_NS=10**12, REPORTED_RATIO=0.9)
    profiler = backend.profiler()
    gc.collect(0)
    time.sleep(0.2)
    backend.train(1)
    profiler.stop()
    assert "garbage" not in caplog.text


def test_marks_are_bounded_and_long_collections_have_theirs(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    thresholds(monkeypatch, AT_ONCE=3, ANOTHER_NS=10**15, REPORTED_RATIO=0.0)
    profiler = backend.profiler()
    backend.train(5, before=lambda _: gc.collect(0))
    monkeypatch.setattr(garbage, "LONG_NS", 0)
    backend.train(2, before=lambda _: gc.collect(0))
    profiler.stop()

    assert [row["step"] for row in marked(backend)] == ["1", "2", "3", "6", "7"]
    assert "2 short Python garbage collections" in caplog.text


def test_profilers_one_after_the_other_and_again(backend: StandIn) -> None:
    before = len(gc.callbacks)
    first = backend.profiler()
    backend.train(2, before=lambda _: gc.collect())
    assert len(gc.callbacks) == before + 1
    first.stop()
    assert len(gc.callbacks) == before
    assert [row["step"] for row in marked(backend)] == ["1", "2"]

    second = backend.profiler()
    backend.train(3, before=lambda _: gc.collect())
    second.stop()
    second.start()
    assert len(gc.callbacks) == before + 1
    backend.train(1, before=lambda _: gc.collect())
    second.stop()

    assert [row["step"] for row in marked(backend)] == ["1", "2", "3", "4"]


def test_a_recording_that_fails_is_not_called_any_more(backend: StandIn) -> None:
    before = len(gc.callbacks)
    profiler = backend.profiler()
    recorder: Any = profiler._recorder
    recorder.session.fail("the disk is gone")
    assert len(gc.callbacks) == before
    profiler.stop()


def test_a_forked_copy_is_not_called(backend: StandIn) -> None:
    before = len(gc.callbacks)
    profiler = backend.profiler()
    backend.train(1)
    child = os.fork()
    if not child:
        gc.collect()
        os._exit(len(gc.callbacks) - before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gc.collect()
    profiler.stop()
    assert len(marked(backend)) == 1


def test_a_failure_within_a_collection_stays_there(
    backend: StandIn, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = backend.profiler()
    assert backend.steps is not None

    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(backend.steps, "collected", fail)
    backend.train(3, before=lambda _: gc.collect())  # what a callback raises would be a warning, and so an error here
    profiler.stop()

    assert caplog.text.count("garbage collections are no longer recorded (RuntimeError: broken)") == 1


_INTERRUPTED = """
import gc, os, signal, sys, threading, time
from stepscope.record.garbage import GarbageMarks
from stepscope.record.marks import MarkBuffer
from stepscope.record.steps import StepTracker

kept = [[] for _ in range(500_000)]
hook = sys.unraisablehook
steps = StepTracker(MarkBuffer(), None, None, None)
steps.begin()
marks = GarbageMarks(steps)
marks.begin()

def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
end = time.monotonic() + 60
try:
    while time.monotonic() < end:
        gc.collect()
except KeyboardInterrupt:
    marks.end()
    print("interrupted", sys.unraisablehook is hook)
"""


def test_ctrl_c_during_a_collection_ends_training() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "interrupted True\n"
    assert done.stderr == ""


def test_what_else_python_forgets_is_printed_as_ever(backend: StandIn) -> None:
    told: list[object] = []

    class Fails:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        profiler = backend.profiler()
        Fails()
        profiler.stop()
    finally:
        assert sys.unraisablehook == told.append
        sys.unraisablehook = before
    assert len(told) == 1
