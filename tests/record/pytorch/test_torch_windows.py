"""Operator windows: recorded, given way, written whole or not at all, and readable."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_recorder import Attached, attached, batches, files, make, train  # noqa: E402

import stepscope  # noqa: E402
from stepscope.record import window_timing  # noqa: E402
from stepscope.record.options import Options  # noqa: E402
from stepscope.record.torch import export as exporting  # noqa: E402
from stepscope.run import open_run  # noqa: E402


def window(recorder: Attached, directory: Path, steps: int = 3) -> list[str]:
    """Record a window and have it written."""
    recorder.backend.windows.begin(directory)
    train(*make(), batches(steps))
    return recorder.finish(directory)


def events(directory: Path) -> list[dict[str, Any]]:
    with gzip.open(directory / "trace.json.gz") as file:
        return list(json.load(file)["traceEvents"])


def names(directory: Path) -> list[str]:
    return [str(event.get("name")) for event in events(directory)]


def test_a_window_is_a_trace_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with attached(Options(profile_memory=True)) as recorder:
        assert window(recorder, tmp_path) == ["trace.json.gz"]
    assert files(tmp_path) == ["trace.json.gz"]
    assert (tmp_path / "trace.json.gz").stat().st_mode & 0o777 == 0o600
    run = open_run(tmp_path, use_store=False)
    assert [rank.rank for rank in run.ranks] == [3]
    operators = run.table("operators").collect()
    assert (operators["name"] == "aten::addmm").sum() == 6
    assert operators.filter(operators["name"] == "aten::addmm")["input_shapes"].null_count() == 0
    assert run.table("ranks").collect()["world_size"].to_list() == [8]


def test_without_shapes(tmp_path: Path) -> None:
    with attached(Options(record_shapes=False)) as recorder:
        window(recorder, tmp_path)
    assert not any("Input Dims" in event.get("args", {}) for event in events(tmp_path))


def test_stacks_where_asked_for(tmp_path: Path) -> None:
    with attached(Options(host_stack=True, given=frozenset({"host_stack"}))) as recorder:
        window(recorder, tmp_path, 1)
    assert any(event.get("cat") == "python_function" for event in events(tmp_path))


def test_many_short_windows_that_end_within_the_optimizer(tmp_path: Path) -> None:
    """A range that is open where one window ends and the next begins must not write into the memory of the first."""
    jobs = []

    class Rolling(Attached):
        def step_ended(self, number: int, now_ns: int) -> None:
            directory = tmp_path / str(number)
            directory.mkdir()
            jobs.append(self.backend.windows.end(directory))
            self.backend.windows.begin(directory)

    recorder = Rolling()
    try:
        recorder.steps.begin()
        with torch.autograd.profiler.record_function("the whole epoch"):
            train(*make(), batches(40))
        recorder.backend.windows.end(tmp_path)
    finally:
        recorder.backend.detach()
    written = [job()[0] for job in jobs if job is not None]
    assert written == [["trace.json.gz"]] * 39
    for number in range(3, 40):
        assert names(tmp_path / str(number)).count("aten::addmm") == 2


def test_it_does_not_begin_beside_another_profiler(tmp_path: Path) -> None:
    with attached() as recorder:
        theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        with theirs, pytest.raises(RuntimeError, match="another torch"):
            recorder.backend.windows.begin(tmp_path)
        assert window(recorder, tmp_path) == ["trace.json.gz"]


def test_it_gives_way_to_the_scripts_own_profiler(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, optimizer = make()
    with attached() as recorder:
        recorder.backend.windows.begin(tmp_path)
        train(model, optimizer, batches(2))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            train(model, optimizer, batches(3))
        train(model, optimizer, batches(1))
        recorder.finish(tmp_path)
        counted = {entry.key: entry.count for entry in theirs.key_averages()}
        assert counted["aten::addmm"] == 6
        assert names(tmp_path).count("aten::addmm") == 4
        assert recorder.ended == [1, 2, 3, 4, 5, 6]
    assert not caplog.records  # who owns the windows tells it


def test_it_does_not_begin_while_another_profiler_warms_up(tmp_path: Path) -> None:
    with attached() as recorder:
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as theirs:
            with pytest.raises(RuntimeError, match="another torch"):
                recorder.backend.windows.begin(tmp_path)
            theirs.step()
            train(*make(), batches(1))
        assert any(entry.key == "aten::addmm" for entry in theirs.key_averages())


def test_it_does_not_begin_while_one_warms_up_that_was_there_before_the_hooks(tmp_path: Path) -> None:
    plan = torch.profiler.schedule(wait=0, warmup=50, active=1)

    profiler = torch.profiler.profile(schedule=plan)
    with profiler, attached() as recorder, pytest.raises(RuntimeError, match="another torch"):
        recorder.backend.windows.begin(tmp_path)


def test_a_window_without_a_begin_holds_nothing(tmp_path: Path) -> None:
    with attached() as recorder:
        assert recorder.backend.windows.end(tmp_path) is None


class Results:
    """Stands for what Kineto recorded."""

    def __init__(self, main: int) -> None:
        self.main = main

    def save(self, path: str) -> None:
        Path(path).write_text(f'{{"by": {os.getpid()}}}')


def test_the_child_writes(tmp_path: Path) -> None:
    assert exporting.export(Results(os.getpid()), tmp_path)[0] == ["trace.json.gz"]
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["by"] != os.getpid()


class Hanging(Results):
    def save(self, path: str) -> None:
        if os.getpid() != self.main:
            time.sleep(60)
        super().save(path)


class Failing(Results):
    def save(self, path: str) -> None:
        if os.getpid() != self.main:
            os.kill(os.getpid(), signal.SIGKILL)
        super().save(path)


@pytest.mark.parametrize("kind", [Hanging, Failing])
def test_where_the_child_fails_the_thread_writes(tmp_path: Path, kind: type[Results]) -> None:
    assert exporting.export(kind(os.getpid()), tmp_path, patience_s=0.5)[0] == ["trace.json.gz"]
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["by"] == os.getpid()
    assert files(tmp_path) == ["trace.json.gz"]


def test_what_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    class Unwritable(Results):
        def save(self, path: str) -> None:
            Path(path).write_text("{")
            raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        exporting.export(Unwritable(0), tmp_path)
    assert files(tmp_path) == []


def test_a_killed_process_leaves_no_half_trace_under_the_final_name(tmp_path: Path) -> None:
    class Slow(Results):
        def save(self, path: str) -> None:
            Path(path).write_text("{")
            time.sleep(30)

    process = os.fork()
    if process == 0:
        exporting.export(Slow(0), tmp_path)
        os._exit(0)
    while not files(tmp_path):
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert "trace.json.gz" not in files(tmp_path)


def test_a_forked_child_does_not_go_on_recording(tmp_path: Path) -> None:
    found = tmp_path / "child.json"
    directory = tmp_path / "window"
    directory.mkdir()
    with attached() as recorder:
        recorder.backend.windows.begin(directory)
        train(*make(), batches(1))
        child = os.fork()
        if child == 0:
            train(*make(), batches(5))
            torch.autograd._disable_profiler().save(str(found))
            os._exit(0)
        os.waitpid(child, 0)
        train(*make(), batches(1))
        recorder.finish(directory)
    assert found.read_text().count('"aten::addmm"') == 2  # of before the fork
    assert names(directory).count("aten::addmm") == 4


def test_windows_are_cut_by_the_number_of_their_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ending a window takes grows with its events, and at first nobody knows how many a step has."""
    monkeypatch.setattr(window_timing, "MOST_EVENTS", 400)
    monkeypatch.setattr(window_timing, "FIRST_NS", 20_000_000)
    profiler = stepscope.Profiler(output_path=str(tmp_path), framework="torch", steps=(1, 60))
    model, optimizer = make()
    for _ in range(60):
        train(model, optimizer, batches(1))
        time.sleep(0.01)
    profiler.stop()

    found = []
    assert profiler.directory is not None
    for window in sorted((profiler.directory / "windows").iterdir()):
        ranges = [event for event in events(window) if event.get("ph") == "X"]
        steps = sum(event["name"].startswith("Optimizer.step#") for event in ranges)
        found.append((steps, len(ranges)))
    assert sum(steps for steps, _ in found) == 60
    assert len(found) > 5
    later = found[len(found) // 2 :]
    assert all(steps == 1 or count <= 2 * 400 for steps, count in later), found


def test_the_events_of_a_window_are_counted(tmp_path: Path) -> None:
    with attached() as recorder:
        window(recorder, tmp_path)
        ranges = [event for event in events(tmp_path) if event.get("ph") == "X"]
        assert recorder.events == len(ranges) > 50
