"""Steps, spans and windows of a recording."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorder_standin import StandIn

import stepscope
from stepscope.record import session as session_module
from stepscope.record import window_timing
from stepscope.record import windows as windows_module
from stepscope.record.backend import WindowLost, Written
from stepscope.record.schedule import Action
from stepscope.recording_format.rows import HOST


def test_every_step_is_recorded_once_and_steps_follow_one_another(backend: StandIn) -> None:
    backend.record(5)
    marks = backend.rows()
    steps = [mark for mark in marks if mark["kind"] == "step"]
    assert [int(step["name"]) for step in steps] == [1, 2, 3, 4, 5]
    assert [step["end_ns"] for step in steps[:-1]] == [step["start_ns"] for step in steps[1:]]
    for mark in marks:
        step = steps[int(mark["step"]) - 1]
        assert int(step["start_ns"]) <= int(mark["start_ns"]) <= int(mark["end_ns"]) <= int(step["end_ns"])
    assert abs(int(steps[0]["start_ns"]) - time.time_ns()) < 60e9


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux counts waits")
def test_each_step_says_how_long_its_thread_waited_for_a_processor(backend: StandIn) -> None:
    backend.record(3)

    steps = [mark for mark in backend.rows() if mark["kind"] == "step"]
    assert len(steps) == 3
    for step in steps:
        name, _, waited = step["detail"].partition("=")
        assert name == "run_delay_ns"
        assert 0 <= int(waited) <= int(step["end_ns"]) - int(step["start_ns"]) + 20_000_000


def test_start_and_stop_between_steps_keep_their_numbers(backend: StandIn) -> None:
    profiler = backend.profiler(start_profile=False)
    backend.train(2)
    profiler.start()
    backend.train(3)
    profiler.stop()
    backend.train(2)
    profiler.start()
    backend.train(1)
    profiler.stop()
    assert backend.recorded_steps() == [3, 4, 5, 8]


def test_what_is_left_of_a_step_at_the_stop_is_no_step(backend: StandIn) -> None:
    profiler = backend.profiler()
    backend.train(2)
    assert backend.steps is not None
    backend.steps.mark("data", "loader", time.perf_counter_ns(), time.perf_counter_ns())
    profiler.stop()
    assert backend.recorded_steps() == [1, 2]
    assert backend.rows()[-1]["kind"] == "data"


def test_the_users_steps_override_those_of_the_hooks(backend: StandIn) -> None:
    profiler = backend.profiler()
    for _ in range(3):
        backend.train(2)  # two optimizers in one step
        profiler.step()
    profiler.stop()
    # before the first step() nobody knows that the optimizer does not end steps
    assert backend.recorded_steps() == [1, 2, 3, 4]


def record_user_steps(backend: StandIn, **options: Any) -> None:
    profiler = backend.profiler(**options)
    for _ in range(4):
        backend.train(1)
        profiler.step()
    profiler.stop()


@pytest.mark.parametrize("window", [5.0, 1e-9])
def test_a_users_step_after_the_optimizer_is_the_same_step(backend: StandIn, window: float) -> None:
    record_user_steps(backend, window_seconds=window)
    assert backend.recorded_steps() == [1, 2, 3, 4]


def test_a_schedule_records_its_steps_only(backend: StandIn) -> None:
    ready: list[int] = []

    def note(profiler: stepscope.Profiler) -> None:
        ready.append(len(backend.rows("windows.csv")))

    plan = stepscope.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    backend.record(14, schedule=plan, on_trace_ready=note)
    assert backend.recorded_steps() == [4, 5, 8, 9]
    assert [(w["first_step"], w["last_step"]) for w in backend.rows("windows.csv")] == [("4", "5"), ("8", "9")]
    assert ready == [1, 2]


def test_cycles_without_a_pause(backend: StandIn) -> None:
    ready: list[object] = []
    profiler = backend.record(6, schedule=stepscope.schedule(active=2, repeat=2), on_trace_ready=ready.append)
    assert backend.recorded_steps() == [1, 2, 3, 4]
    assert ready == [profiler, profiler]


def test_a_range_of_steps(backend: StandIn) -> None:
    backend.record(6, steps=(2, 3))
    assert backend.recorded_steps() == [2, 3]


def test_a_range_of_epochs(backend: StandIn) -> None:
    profiler = backend.profiler(epochs=(2, 3))
    assert backend.steps is not None
    for epoch in range(1, 5):
        backend.steps.epoch_began(epoch, time.perf_counter_ns())
        backend.train(2)
        backend.steps.epoch_ended(epoch)
    profiler.stop()
    assert backend.recorded_steps() == [3, 4, 5, 6]
    assert [m["name"] for m in backend.rows(kind="epoch")] == ["2", "3"]


def test_an_epoch_that_was_not_seen_to_begin_ends_its_range_without_a_mark(backend: StandIn) -> None:
    profiler = backend.profiler(epochs=(1, 1))
    assert backend.steps is not None
    backend.train(2)
    backend.steps.epoch_ended(1)
    backend.train(2)
    profiler.stop()
    assert backend.recorded_steps() == [1, 2]
    assert backend.rows(kind="epoch") == []


def test_windows_end_with_steps(backend: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_module, "MOST_WAITING", 100)
    monkeypatch.setattr(window_timing, "LEAST_PAUSED_NS", 10**12)
    backend.record(3, window_seconds=1e-9)
    windows = backend.rows("windows.csv")
    assert [(w["first_step"], w["last_step"], w["state"]) for w in windows] == [
        ("1", "1", "complete"),
        ("2", "2", "complete"),
        ("3", "3", "complete"),
        ("4", "3", "complete"),
    ]
    assert all((backend.directory / "windows" / f"{int(w['window']):06d}" / w["files"]).exists() for w in windows)


def test_a_step_is_reported_and_recording_can_be_cut_once_its_window_is_ended(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another thread that stops the recording then would overtake the window."""
    profiler = backend.profiler(window_seconds=1e-9, schedule=lambda step: Action.RECORD if step < 2 else Action.NONE)
    recorder = profiler._recorder
    assert recorder is not None
    end, seen = backend.end, []

    def watched(directory: Path) -> Callable[[], Written] | None:
        seen.append(("window", recorder.cut()))
        return end(directory)

    monkeypatch.setattr(backend, "end", watched)
    recorder.after_step = lambda number, _: seen.append((number, recorder.session.windows.is_open))
    backend.train(3)
    assert seen == [("window", False), (1, True), ("window", False), (2, False), (3, False)]
    assert recorder.cut()
    profiler.stop()
    assert backend.recorded_steps() == [1, 2]


def slow_writing(backend: StandIn, monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object]) -> None:
    """Windows whose writing waits."""
    end = backend.end

    def slow(directory: Path) -> Callable[[], Written] | None:
        job = end(directory)
        assert job is not None
        return lambda: (job(), wait())[0]

    monkeypatch.setattr(backend, "end", slow)


def test_windows_that_the_disk_does_not_take_are_left_out(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    held = threading.Event()
    slow_writing(backend, monkeypatch, held.wait)
    profiler = backend.profiler(window_seconds=1e-9)
    backend.train(20)
    held.set()
    profiler.stop()
    assert "faster than the disk can write them" in caplog.text
    assert len(backend.rows("windows.csv")) == windows_module.MOST_WAITING + 1
    assert backend.recorded_steps() == list(range(1, 21))


def test_without_operators_there_are_no_windows(backend: StandIn) -> None:
    backend.record(2, op_time=False)
    assert "begin" not in backend.calls
    assert not (backend.directory / "windows.csv").exists()
    assert backend.recorded_steps() == [1, 2]


def test_a_framework_that_refuses_is_told_once_and_marks_go_on(backend: StandIn, caplog: Any) -> None:
    backend.refuses = RuntimeError("another profiler is active")
    backend.record(3, window_seconds=1e-9)
    assert backend.recorded_steps() == [1, 2, 3]
    assert caplog.text.count("another profiler is active") == 1
    assert backend.about()["problems"] == [
        "operators are not recorded: another profiler is active",
        "operators are missing in 3 of 3 steps (1-3), because they could not be recorded there (another "
        "message gives the reason)",
    ]


def test_a_window_that_cannot_be_written_is_told(backend: StandIn, caplog: Any) -> None:
    backend.write_fails = OSError(28, "No space left on device")
    backend.record(2)
    assert [w["state"] for w in backend.rows("windows.csv")] == ["failed"]
    assert "No space left" in caplog.text


def test_marks_are_on_disk_within_a_second(backend: StandIn) -> None:
    profiler = backend.profiler()
    backend.train(3)
    file = backend.directory / "marks.csv"
    for _ in range(100):
        if file.exists() and len(backend.recorded_steps()) == 2:  # the third may still go on
            break
        time.sleep(0.05)
    assert backend.recorded_steps() == [1, 2]
    profiler.stop()


def test_a_full_disk_ends_the_recording_and_not_the_training(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    profiler = backend.profiler()
    backend.train(1)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for _ in range(100):
            backend.train(1)
            if "No space left" in caplog.text:
                break
            time.sleep(0.05)
    backend.train(3)
    profiler.stop()
    profiler.start()
    backend.train(1)
    profiler.stop()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "training continues" in errors[0].message


def test_a_hook_that_meets_a_broken_session_is_not_harmed(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    profiler = backend.profiler(window_seconds=1e-9)

    def broken(directory: Path) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(backend, "end", broken)
    backend.train(3)
    profiler.stop()
    assert "ValueError: no such thing" in caplog.text


def test_files_and_directories_are_private(backend: StandIn, tmp_path: Path) -> None:
    profiler = stepscope.Profiler(output_path=str(tmp_path / "new"))
    backend.train(2)
    profiler.stop()
    found = list((tmp_path / "new").rglob("*"))
    assert found
    for path in found:
        assert path.stat().st_mode & 0o077 == 0 or path.name == "trace.json", path


def test_recording_json(backend: StandIn) -> None:
    backend.rank = None
    profiler = backend.profiler(record_shapes=False)
    before = backend.about()
    assert (before["state"], before["rank"], before["world_size"]) == ("recording", 0, 1)
    backend.rank = 3  # the process group was made
    assert backend.steps is not None
    backend.steps.identity_changed()
    backend.train(1)
    profiler.stop()
    after = backend.about()
    assert (after["state"], after["rank"], after["world_size"]) == ("stopped", 3, 4)
    assert after["options"]["record_shapes"] is False
    assert after["groups"] == [{"group": "0", "name": "default_pg", "members": [0, 1]}]
    ((start, end),) = after["spans"]
    assert after["started_ns"] <= start <= end <= after["updated_ns"]


def test_a_forked_copy_records_nothing(backend: StandIn) -> None:
    profiler = backend.profiler(window_seconds=1e-9)
    backend.train(2)
    child = os.fork()
    if child == 0:
        backend.train(50)
        os._exit(0)
    os.waitpid(child, 0)
    backend.train(1)
    profiler.stop()
    assert backend.recorded_steps() == [1, 2, 3]
    assert len(list(backend.directory.parent.iterdir())) == 1


def test_samples_of_host_and_process(backend: StandIn) -> None:
    profiler = backend.profiler(sampling_interval=20)
    for _ in range(100):
        backend.train(1)
        time.sleep(0.01)
        if (backend.directory / "host.csv").exists() and len(backend.rows("host.csv")) > 5:
            break
    profiler.stop()
    samples = backend.rows("host.csv")
    assert {sample["scope"] for sample in samples} == {"host", "process"}
    own = [sample for sample in samples if sample["scope"] == "process"]
    assert {sample["pid"] for sample in own} == {str(os.getpid())}
    assert all(int(sample["rss_bytes"]) > 1_000_000 for sample in own)
    assert [int(s["time_ns"]) for s in own] == sorted(int(s["time_ns"]) for s in own)


def test_without_psutil_the_rest_is_recorded(backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def missing(*_: object) -> None:
        raise ImportError("psutil")

    monkeypatch.setattr(session_module, "HostSampler", missing)
    backend.record(2)
    assert "pip install psutil" in caplog.text
    assert backend.recorded_steps() == [1, 2]


def test_stop_in_the_function_for_traces(backend: StandIn) -> None:
    plan = stepscope.schedule(active=2)
    backend.profiler(schedule=plan, on_trace_ready=lambda profiler: profiler.stop())
    backend.train(6)
    assert backend.steps is not None and not backend.steps.active
    assert backend.calls.count("begin") == backend.calls.count("end") == 1
    assert backend.recorded_steps() == [1, 2]


@pytest.mark.parametrize(
    ("options", "steps", "calls"),
    [
        ({}, 3, 1),
        ({"steps": (1, 2)}, 4, 1),
        ({"steps": (1, 9)}, 4, 1),
        ({"steps": (8, 9)}, 4, 0),
        ({"schedule": stepscope.schedule(active=2, repeat=2)}, 4, 2),
        ({"schedule": stepscope.schedule(active=3)}, 4, 2),
    ],
)
def test_the_function_for_traces_is_called_once_for_each(
    backend: StandIn, options: dict[str, Any], steps: int, calls: int
) -> None:
    ready: list[object] = []
    with backend.profiler(on_trace_ready=ready.append, **options):
        backend.train(steps)
    assert len(ready) == calls


@pytest.mark.parametrize(
    ("options", "steps", "told"),
    [
        ({"steps": (100, 200)}, 4, "steps 100 to 200 never began; 4 steps ended"),
        ({"epochs": (2, 3)}, 4, "epochs 2 to 3 never began"),
        ({"schedule": stepscope.schedule(wait=9)}, 4, "the schedule's first active step never began"),
        ({}, 0, "no steps were detected"),
    ],
)
def test_nothing_recorded_is_told(
    backend: StandIn, options: dict[str, Any], steps: int, told: str, caplog: Any
) -> None:
    backend.record(steps, **options)
    assert told in caplog.text


def test_what_passes_costs_nothing(backend: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    profiler = backend.profiler()
    backend.train(2)
    seen = threading.Event()

    def no_more_files(*_: object, **__: object) -> int:
        seen.set()
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", no_more_files)
        assert seen.wait(10)
    backend.train(2)
    profiler.stop()
    assert backend.recorded_steps() == [1, 2, 3, 4]


def test_a_sampler_that_fails_ends_alone(backend: StandIn, caplog: Any) -> None:
    class Broken:
        file = HOST

        def __init__(self, workers: object) -> None: ...

        def read(self, time_ns: int) -> str:
            raise FileNotFoundError(2, "No such file or directory", "/proc/stat")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "HostSampler", Broken)
        profiler = backend.profiler()
        backend.train(2)
        for _ in range(100):
            if "sampling for host.csv stopped" in caplog.text:
                break
            time.sleep(0.02)
        backend.train(1)
        profiler.stop()
    assert "sampling for host.csv stopped" in caplog.text
    assert backend.recorded_steps() == [1, 2, 3]


def test_a_window_that_had_to_end_early_says_so(backend: StandIn, caplog: Any) -> None:
    profiler = backend.profiler()
    backend.train(3)
    backend.cut = (2, time.perf_counter_ns())
    backend.train(3)
    profiler.stop()
    assert [window["last_step"] for window in backend.rows("windows.csv")] == ["2"]
    assert "another profiler took over in step 3" in caplog.text


def test_a_profiler_that_takes_over_is_told_once(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Where it begins, not again where the next window cannot begin beside it; but again where it comes back."""
    monkeypatch.setattr(windows_module, "MOST_WAITING", 100)
    profiler = backend.profiler(window_seconds=1e-9)
    for cut in ((1, 0), None, (7, 0)):
        backend.cut = cut
        backend.refuses = RuntimeError("another profiler is active") if cut else None
        backend.train(3)
    profiler.stop()
    told = [record.message for record in caplog.records if "another profiler" in record.message]
    text = "Profiler: another profiler took over in step %d; while it is active, operators are not recorded"
    assert told == [text % 2, text % 8]
    assert {window["state"] for window in backend.rows("windows.csv")} == {"complete"}


def test_a_window_that_is_lost_is_told_once_and_entered(backend: StandIn, caplog: Any) -> None:
    profiler = backend.profiler()
    backend.train(3)
    backend.cut, backend.loses = (2, time.perf_counter_ns()), WindowLost("another took it away")
    profiler.stop()
    (window,) = backend.rows("windows.csv")
    assert (window["last_step"], window["state"], window["files"]) == ("2", "failed", "")
    assert backend.about()["problems"] == ["a window of operators is lost: another took it away"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def costly(backend: StandIn, monkeypatch: pytest.MonkeyPatch, cost_s: float, events: int) -> None:
    """Windows that take long to end, and of which the number of events is known."""
    end = backend.end

    def slow(directory: Path) -> Callable[[], Written] | None:
        until = time.thread_time() + cost_s
        while time.thread_time() < until:
            pass
        return end(directory)

    monkeypatch.setattr(backend, "end", slow)
    backend.counts_events, backend.window_events = True, events


def missing(found: dict[str, Any]) -> list[str]:
    return [text for text in found["problems"] if "operators are missing" in text]


def test_steps_left_out_to_save_time_are_reported_at_the_end(backend: StandIn, monkeypatch: Any) -> None:
    costly(backend, monkeypatch, 0.06, window_timing.MOST_EVENTS)
    backend.record(30, before=lambda _: time.sleep(0.01), window_seconds=0.01)

    windows = backend.rows("windows.csv")
    shown = {n for w in windows for n in range(int(w["first_step"]), int(w["last_step"]) + 1)} & set(range(1, 31))
    assert 1 <= len(shown) < 30
    (text,) = missing(backend.about())
    assert text.startswith(f"operators are missing in {30 - len(shown)} of 30 steps (")
    assert backend.recorded_steps() == list(range(1, 31))


def test_no_step_that_was_asked_for_is_left_out(backend: StandIn, monkeypatch: Any) -> None:
    costly(backend, monkeypatch, 0.06, window_timing.MOST_EVENTS)
    backend.record(10, before=lambda _: time.sleep(0.01), window_seconds=0.01, steps=(2, 8))

    windows = backend.rows("windows.csv")
    assert sorted({n for w in windows for n in range(int(w["first_step"]), int(w["last_step"]) + 1)}) == [*range(2, 9)]
    assert missing(backend.about()) == []


def test_where_steps_were_asked_for_training_waits_for_the_disk(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_writing(backend, monkeypatch, lambda: time.sleep(0.05))
    backend.record(10, window_seconds=1e-9, steps=(1, 10))
    assert len(backend.rows("windows.csv")) == 10


def test_waiting_for_the_processor_is_no_reason_to_record_less(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = backend.end

    def waits(directory: Path) -> Callable[[], Written] | None:
        time.sleep(0.1)
        return end(directory)

    monkeypatch.setattr(backend, "end", waits)
    backend.record(5, before=lambda _: time.sleep(0.01), window_seconds=0.01)
    assert missing(backend.about()) == []


def test_until_the_first_window_is_counted_training_waits_for_the_disk(
    backend: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_writing(backend, monkeypatch, lambda: time.sleep(0.2))
    backend.counts_events, backend.window_events = True, 10
    backend.record(3, before=lambda _: time.sleep(0.02), window_seconds=0.02)
    assert missing(backend.about()) == []


def test_what_the_script_does_after_a_window_has_ended_is_part_of_the_next_step(
    backend: StandIn, monkeypatch: Any
) -> None:
    """The recorder's own time is part of no step, but a pause of the script behind it is."""
    costly(backend, monkeypatch, 0.03, window_timing.MOST_EVENTS)
    backend.record(12, before=lambda _: time.sleep(0.02), window_seconds=0.001)

    marks = backend.rows(kind="step")
    lengths = {int(row["name"]): (int(row["end_ns"]) - int(row["start_ns"])) / 1e6 for row in marks}
    ended = {int(row["last_step"]) for row in backend.rows("windows.csv")}
    behind = [lengths[step + 1] for step in sorted(ended) if step + 1 in lengths]
    assert len(behind) >= 3
    assert min(behind) >= 20  # and not the 30 ms that ending takes
    assert min(behind) < 45


def test_a_first_step_call_behind_the_end_of_a_window_is_of_the_step_that_hooks_have_ended(
    backend: StandIn, monkeypatch: Any
) -> None:
    costly(backend, monkeypatch, 0.001, window_timing.MOST_EVENTS)
    record_user_steps(backend, window_seconds=0.000_001)

    assert backend.recorded_steps() == [1, 2, 3, 4]


def test_the_recorders_own_threads_are_listed(backend: StandIn) -> None:
    others = set(threading.enumerate())
    profiler = backend.profiler()
    backend.train(2)
    threads = {thread.native_id for thread in threading.enumerate() if thread not in others}
    profiler.stop()

    listed = set(backend.about()["own_threads"])
    assert threads and threads <= listed
    assert threading.get_native_id() not in listed
