"""A command that is run as if it had been started by itself, and what is said when it is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.cli.recorded import outcome
from stepscope.cli.running import run_command
from stepscope.record import signs
from stepscope.record.signs import Signs
from stepscope.recording_format.about import FORMAT, VERSION


def run(code: str) -> int:
    return run_command([sys.executable, "-c", code], os.environ, lambda: None)


def test_the_exit_code_is_that_of_the_command() -> None:
    assert run("raise SystemExit(3)") == 3
    assert run("import os; os.kill(os.getpid(), 9)") == 128 + 9


def test_what_is_looked_at_is_seen_while_it_runs() -> None:
    looks: list[float] = []

    run_command([sys.executable, "-c", "import time; time.sleep(1.2)"], os.environ, lambda: looks.append(time.time()))

    assert len(looks) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_of_other_processes_are_passed_on(number: signal.Signals) -> None:
    child = f"import signal, sys, time; signal.signal({int(number)}, lambda *_: sys.exit(5)); print(1, flush=True); "
    parent = (
        "import os, sys; from stepscope.cli.running import run_command; "
        f"sys.exit(run_command([sys.executable, '-c', {child + 'time.sleep(60)'!r}], os.environ, lambda: None))"
    )
    # in a process of its own: a signal goes to any thread that takes it, and a runner of tests has several
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)

        assert process.wait(60) == 5


def recording(root: Path, rank: int, steps: int, **about: object) -> Path:
    """A recording with some steps."""
    directory = root / "prof" / "profiler" / "recording" / f"rank-{rank}_here-{rank}_2026"
    directory.mkdir(parents=True)
    stated = {"format": FORMAT, "version": VERSION, "rank": rank, "state": "stopped", **about}
    (directory / "recording.json").write_text(json.dumps(stated))
    lines = [f"step,{n},1,2,{n},7,\n" for n in range(steps)]
    (directory / "marks.csv").write_text("".join(["kind,name,start_ns,end_ns,step,thread,detail\n", *lines]))
    return directory


def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: tuple[str, str]) -> Signs:
    found = Signs(tmp_path / "signs")
    monkeypatch.setenv(signs.VARIABLE, str(found.file))
    monkeypatch.chdir(tmp_path)
    for kind, text in lines:
        signs.give(kind, text)
    found.look()
    return found


def test_one_line_says_what_was_recorded_and_what_is_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [(signs.RECORDING, str(recording(tmp_path, rank, 25))) for rank in (0, 1)]

    assert (
        outcome(said(tmp_path, monkeypatch, *made), None) == "2 ranks, 25 steps in prof/; next: stepscope analyze prof"
    )


def test_what_is_missing_is_said_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = recording(tmp_path, 0, 25), recording(tmp_path, 3, 1, state="recording")
    lines = [(signs.RECORDING, str(place)) for place in (whole, cut)]

    told = outcome(said(tmp_path, monkeypatch, *lines, (signs.ANALYSING, str(whole))), None)

    assert told.startswith("2 ranks, 1 to 25 steps in prof/ (rank 3 was killed: ")
    assert "analysis was interrupted" in told


def test_without_any_step_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "nothing was recorded: steps 90 to 99 never began; 30 steps ended"
    line = (signs.RECORDING, str(recording(tmp_path, 0, 0, problems=[problem])))

    told = outcome(said(tmp_path, monkeypatch, line), None)

    assert told == "no step was recorded in prof/: steps 90 to 99 never began; 30 steps ended"


def test_a_recorder_that_could_not_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ((signs.PYTHON, ""), (signs.FRAMEWORK, "torch"), (signs.FAILED, "the recorder could not start (why)"))

    assert (
        outcome(said(tmp_path, monkeypatch, *lines), None) == "no step was recorded: the recorder could not start (why)"
    )


def test_without_a_listener_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(signs.VARIABLE, str(tmp_path / "gone"))

    signs.give(signs.PYTHON)

    assert not (tmp_path / "gone").exists()
