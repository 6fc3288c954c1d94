"""What a process that is visited does, without a debugger: the line is run by a handler of a signal."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from live.attach.attaching import Script, by_signal, lasting, rows, script, wait_for
from stepscope.live.attach import session
from stepscope.live.attach.job import Job, Patience
from stepscope.live.attach.permission import CannotAttach
from stepscope.live.attach.session import Session

PATIENCE = Patience(wait_s=20.0, removal_s=20.0)
"""As in use, but shorter."""


@pytest.fixture(autouse=True)
def _by_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "inject", by_signal)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("torch")
    with script("training.py", STEPSCOPE_TEST_LINE=str(tmp_path_factory.mktemp("line") / "line.py")) as running:
        yield running


def recorded(running: Script, output: Path, steps: int = 5, **options: Any) -> tuple[Any, list[str]]:
    said: list[str] = []
    job = Job([running.pid], said.append, patience=PATIENCE)
    (outcome,) = job.record(steps, {"output_path": str(output), **options})
    return outcome, said


def test_records_the_steps_asked_for_and_leaves_the_process_as_it_was(training: Script, tmp_path: Path) -> None:
    recorded(training, tmp_path / "before", steps=1)  # what torch itself loads when it first records stays
    before = training.look()

    outcome, _ = recorded(training, tmp_path)

    after = training.look()
    marks = rows(Path(outcome.directory) / "marks.csv")
    ended = [row[1] for row in marks if row[0] == "step"]
    assert ended == [str(number) for number in range(outcome.first, outcome.first + 5)]
    assert {row[0] for row in marks} >= {"step", "forward", "backward", "optimizer", "data"}
    assert outcome.steps == 5 and not outcome.problem
    assert not after["changed"]
    assert after["steps"] > before["steps"]
    assert lasting(after) == lasting(before)


def test_outermost_modules_are_found_although_training_is_under_way(training: Script, tmp_path: Path) -> None:
    outcome, _ = recorded(training, tmp_path, op_time=False)

    passes = [row for row in rows(Path(outcome.directory) / "marks.csv") if row[0] == "forward"]
    assert [row[1] for row in passes] == ["Sequential"] * 5


def test_a_second_visit_at_the_same_time_is_refused_and_harms_nothing(training: Script, tmp_path: Path) -> None:
    results: list[Any] = []
    first = threading.Thread(target=lambda: results.append(recorded(training, tmp_path, steps=150, op_time=False)))
    first.start()
    wait_for(lambda: any(tmp_path.glob("profiler/recording/*")))

    with pytest.raises(CannotAttach, match="is being recorded already"):
        recorded(training, tmp_path)

    first.join()
    assert results[0][0].steps == 150
    assert not training.look()["modules"]


def test_the_recording_ends_when_the_other_side_is_gone(training: Script, tmp_path: Path) -> None:
    with Session(training.pid) as visit:
        visit.attach()
        assert visit.connect(10) is not None
        visit.work(session.RECORDING, (3, 99), options={"output_path": str(tmp_path)})
        wait_for(lambda: any(told["type"] == "ready" for told in visit.told(0.1)))
        visit.send("begin", first=None, shift=0, steps=1_000_000)
        begun: list[int] = []
        wait_for(lambda: begun.extend(told["first"] for told in visit.told(0.1) if told["type"] == "begun") or begun)
        wait_for(lambda: any(end[0] > begun[0] for told in visit.told(0.1) for end in told.get("ends", ())))

    wait_for(lambda: not training.look()["modules"])
    look = training.look()
    assert not look["changed"] and not look["optimizer_hooks"]
    assert "stopped" in next(tmp_path.glob("profiler/recording/*/recording.json")).read_text()


def test_a_process_without_a_step_is_left_with_what_was_seen(training: Script, tmp_path: Path) -> None:
    training.process.send_signal(signal.SIGHUP)
    job = Job([training.pid], lambda _: None, patience=Patience(wait_s=1.0))

    (outcome,) = job.record(5, {"output_path": str(tmp_path / "out"), "op_time": False})

    training.process.send_signal(signal.SIGHUP)
    assert not outcome.steps
    assert "no step was seen" in outcome.problem and "training.py" in outcome.problem
    assert not training.look()["modules"]


def test_a_process_that_does_not_train_is_told_so_and_left_as_it_was(tmp_path: Path) -> None:
    with script("idling.py", STEPSCOPE_TEST_LINE=str(tmp_path / "line.py")) as running:
        before = running.look()

        with pytest.raises(CannotAttach, match="has not loaded torch or mindspore"):
            recorded(running, tmp_path)

        wait_for(lambda: running.look() == before)


def test_what_is_missing_in_the_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / "stepscope"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("__version__ = 'x'")
    (home / "work.py").write_text("import a_package_that_nobody_has")
    monkeypatch.setattr(session, "__file__", str(home / "live" / "attach" / "session.py"))
    monkeypatch.setattr(session, "RECORDING", "stepscope.work")
    monkeypatch.setattr("stepscope.live.attach.job.RECORDING", "stepscope.work")
    (home / "live" / "attach").mkdir(parents=True)
    (home / "live" / "attach" / "visitor.py").write_bytes(
        Path(Session.__init__.__code__.co_filename).with_name("visitor.py").read_bytes()
    )
    with script("idling.py", STEPSCOPE_TEST_LINE=str(tmp_path / "line.py")) as running:
        with pytest.raises(CannotAttach, match=r"lacks a_package_that_nobody_has\. Install it there"):
            recorded(running, tmp_path)

        assert not running.look()["modules"]


def test_a_process_that_never_takes_the_line_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.live.attach.injection import Injected

    monkeypatch.setattr(session, "inject", lambda *_: Injected("gdb", 0, ("__epoll_wait", "gloo_wait", "torch_wait")))
    with script("idling.py", STEPSCOPE_TEST_LINE=str(tmp_path / "line.py")) as running:
        said: list[str] = []

        with pytest.raises(CannotAttach, match="Gave up after"):
            Job([running.pid], said.append, patience=Patience(wait_s=0.6, slow_s=0.1)).record(1, {})

        assert "compiled code (gloo_wait < torch_wait)" in said[1]


def test_what_a_killed_process_has_recorded_is_kept_although_a_child_of_it_lives_on(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    said: list[str] = []
    with script("training.py", "forks", STEPSCOPE_TEST_LINE=str(tmp_path / "line.py")) as running:

        def killed_while_recording() -> None:
            wait_for(lambda: any("\nstep," in marks.read_text() for marks in tmp_path.glob("profiler/*/*/marks.csv")))
            running.process.kill()

        killer = threading.Thread(target=killed_while_recording)
        killer.start()
        (outcome,) = Job([running.pid], said.append, patience=PATIENCE).record(
            1_000_000, {"output_path": str(tmp_path), "op_time": False}
        )
        killer.join()

    assert outcome.problem == "the process has ended"
    assert outcome.steps == len([row for row in rows(Path(outcome.directory) / "marks.csv") if row[0] == "step"]) > 0
