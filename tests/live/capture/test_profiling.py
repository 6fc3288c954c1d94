"""Profiles of whole steps, made inside a training process on request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.live.capture import in_worker, room
from stepscope.live.messages import Capture, Captured, Message
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.options import Options
from stepscope.recording_format.marks import FORWARD

torch = pytest.importorskip("torch")


class Training:
    """Training in this process, step by step."""

    def __init__(self, directory: Path) -> None:
        from stepscope.record.torch.backend import TorchBackend

        self.tracker, self.backend, self.directory = LiveTracker(lambda: None), TorchBackend(), directory
        self.backend.attach(self.tracker, Options(op_time=False, data_process=False))
        self._model = torch.nn.Linear(8, 8)
        self._optimizer = torch.optim.SGD(self._model.parameters(), 0.1)
        self._answers: list[Message] = []
        self._answered = threading.Event()

    def step(self) -> None:
        self._model(torch.ones(2, 8)).sum().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()

    def ask(self, request: Capture) -> None:
        in_worker.begin(request, self.tracker, self._take, backend=self.backend, directory=self.directory)

    def answer(self, during: Callable[[], Any] = lambda: None, within_s: float = 20.0) -> Captured:
        end = time.monotonic() + within_s
        while not self._answered.wait(0.01) and time.monotonic() < end:
            during()
        self._answered.clear()
        answer = self._answers.pop()
        assert isinstance(answer, Captured)
        return answer

    def _take(self, message: Message) -> None:
        self._answers.append(message)
        self._answered.set()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    one = Training(tmp_path)
    for _ in range(3):
        one.step()
    yield one
    one.backend.detach()


def test_a_profile_holds_the_steps_asked_for_and_is_a_private_recording(training: Training) -> None:
    training.tracker.switch(frozenset((FORWARD,)))
    training.ask(Capture("c1", steps=3, first_step=60))

    answer = training.answer(training.step)

    assert (answer.error, answer.note, answer.steps) == ("", "", [60, 62])
    traces = [file for file in answer.files if file.endswith("trace.json.gz")]
    assert len(traces) == 1
    assert Path(answer.directory) == training.directory / "captures" / "c1"
    assert all(Path(file).stat().st_mode & 0o077 == 0 for file in answer.files)
    marks = next(file for file in answer.files if file.endswith("marks.csv"))
    steps = [line.split(",")[1] for line in Path(marks).read_text().splitlines() if line.startswith("step,")]
    assert steps == ["60", "61", "62"]
    assert "forward,Linear" in Path(marks).read_text()
    assert not training.tracker.after_step


def test_a_request_that_comes_too_late_says_which_steps_it_got_instead(training: Training) -> None:
    training.ask(Capture("c1", steps=2, first_step=2))

    answer = training.answer(training.step)

    assert answer.steps[1] - answer.steps[0] == 1
    assert answer.steps[0] > 3
    assert "step 2 was over" in answer.note


def test_it_gives_way_to_a_torch_profiler_that_records_or_warms_up(training: Training) -> None:
    plan = torch.profiler.schedule(wait=0, warmup=50, active=1)
    for options in ({}, {"schedule": plan}):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as other:
            training.step()
            other.step()
            training.ask(Capture(f"c{len(options)}", steps=2))
            answer = training.answer(training.step)

        assert "another torch.profiler is active" in answer.error
        assert not list((training.directory / "captures").iterdir())
    training.ask(Capture("later", steps=1))

    assert training.answer(training.step).error == ""


def test_it_gives_way_to_a_torch_profiler_that_begins_meanwhile(training: Training) -> None:
    training.ask(Capture("c", steps=40, first_step=60))
    while training.tracker.number < 70:
        training.step()
        time.sleep(0.01)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other:
        training.step()

    answer = training.answer(training.step)

    assert any(event.key == "aten::linear" for event in other.key_averages())
    assert answer.error == ""
    assert answer.steps == [60, 70]
    assert "another profiler took over in step 71" in answer.note


def test_a_profile_ends_in_the_middle_of_a_step_that_does_not(training: Training) -> None:
    training.ask(Capture("c1", steps=2, seconds=2.0))
    for _ in range(50):
        if training.tracker.after_step:
            break
        time.sleep(0.02)
    for _ in range(2):  # one to warm up; then the first of two
        training.step()
    torch.ones(1)

    answer = training.answer()

    assert answer.error == ""
    assert "so it ends there" in answer.note
    assert any(file.endswith("trace.json.gz") for file in answer.files)


def test_without_any_step_there_is_a_reason_and_nothing_is_left(training: Training) -> None:
    training.ask(Capture("c1", steps=2, first_step=1000, seconds=0.3))

    answer = training.answer()

    assert "step 1000 did not begin: training was in step 4" in answer.error
    assert not (training.directory / "captures" / "c1").exists()


def test_one_at_a_time_and_not_without_bounds(training: Training) -> None:
    training.ask(Capture("long", steps=2, first_step=1000, seconds=1.0))
    training.ask(Capture("second", steps=2))
    second = training.answer()
    training.answer()
    training.ask(Capture("many", steps=1000))

    assert "busy" in second.error
    assert "give 1 to 50 steps" in training.answer().error


def test_old_captures_make_room_for_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_CAPTURES", 3)
    (tmp_path / "captures" / "mine").mkdir(parents=True)
    made = []
    for number in range(5):
        made.append(room.new_capture(tmp_path, f"c{number}"))
        (made[-1] / "file").write_bytes(bytes(100))
        assert room.make_room(made[-1])
        time.sleep(0.01)

    kept = sorted(entry.name for entry in (tmp_path / "captures").iterdir())
    assert kept == ["c2", "c3", "c4", "mine"]
    monkeypatch.setattr(room, "MOST_BYTES", 50)
    assert not room.make_room(made[-1])


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "..", "a/b"])
def test_an_id_cannot_lead_out_of_the_directory(tmp_path: Path, name: str) -> None:
    made = room.new_capture(tmp_path, name)

    assert made.parent == tmp_path / "captures"


def test_a_full_disk_and_an_id_that_exists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room.new_capture(tmp_path, "c")
    with pytest.raises(room.NoRoom, match="exists already"):
        room.new_capture(tmp_path, "c")
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(room.NoRoom, match="Free some space"):
        room.new_capture(tmp_path, "d")
