"""Starting a worker: arguments, switches without a proxy, helpers."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import pytest
from live_rig import BOOTSTRAP, FakeProxy, counts, kind_of, ranges, until, variables

from stepscope import live
from stepscope.live.messages import Capture, Captured, Digests, Dump, Hello, Pulse
from stepscope.live.worker import api
from stepscope.live.worker.thread import LiveThread
from stepscope.record import autostart
from stepscope.record.autostart import LIVE_VARIABLE
from stepscope.record.backend import Backend, InProgress, Surroundings
from stepscope.record.environment import Identity
from stepscope.record.options import Options
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import COLLECTIVE, FORWARD, MarkKind, collective_text


class NoFramework(Backend):
    """A backend whose training is played by the test."""

    target = "cpu"

    def __init__(self) -> None:
        self.rank: int | None = None
        self.is_helper = False
        self.inside: list[InProgress] = []
        self.steps: Any = None
        self.fails = False

    def identity(self) -> Identity:
        return Identity(self.rank)

    def surroundings(self) -> Surroundings:
        return Surroundings("torch", "9.9", "cpu", groups=[{"group": "0", "name": "default_pg", "members": [0, 1]}])

    def lacks(self, options: Options) -> dict[str, str]:
        return {}

    def attach(self, steps: StepTracker, options: Options) -> None:
        if self.fails:
            raise RuntimeError("no hooks here")
        self.steps = steps

    def detach(self) -> None:
        self.steps = None

    def worker_pids(self) -> dict[int, str]:
        return {}

    def in_progress(self) -> list[InProgress]:
        return self.inside

    def in_data_worker(self) -> bool:
        return self.is_helper

    def play(self, kind: MarkKind) -> None:
        start_ns = perf_counter_ns()
        self.steps.activity(start_ns, kind)
        self.steps.mark(kind, "Net", start_ns, perf_counter_ns())

    def step(self) -> None:
        self.play(FORWARD)
        self.steps.ended(perf_counter_ns())


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[NoFramework]:
    made = NoFramework()
    monkeypatch.setattr("stepscope.record.profiler.backend_for", lambda framework: made)
    yield made
    live.stop_worker()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((-1,), "rank"),
        ((True,), "rank"),
        (("0",), "rank"),
        ((0, 0), "disk_limit_mb"),
        ((0, 5.5), "disk_limit_mb"),
        ((0, 5000, "tf"), "framework"),
        ((0, 5000, 3), "framework"),
    ],
)
def test_wrong_arguments_start_nothing_and_are_named(
    backend: NoFramework, arguments: tuple[Any, ...], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert live.start_worker(*arguments) is False

    assert len(caplog.records) == 1 and named in caplog.text and "Training continues" in caplog.text
    assert backend.steps is None


def test_a_failure_starts_nothing_and_does_not_raise(backend: NoFramework, caplog: pytest.LogCaptureFixture) -> None:
    backend.fails = True

    assert live.start_worker() is False
    assert "no hooks here" in caplog.text
    assert live.stop_worker() is False
    live.step()


def test_without_a_home_directory_the_message_says_what_to_set_and_no_hook_stays(
    backend: NoFramework, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("STEPSCOPE_LIVE_DIR")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)

    assert live.start_worker(0) is False

    assert len(caplog.records) == 1 and "Set STEPSCOPE_LIVE_DIR" in caplog.text
    assert backend.steps is None


def test_answers_to_requests_name_the_rank_that_the_script_has_given(backend: NoFramework, proxy: FakeProxy) -> None:
    assert live.start_worker(3)
    (worker,) = proxy.wait(1)

    worker.send(Dump("now", calls=False))
    worker.send(Capture("much", steps=1000))

    answers = until(lambda: worker.of(Captured) if len(worker.of(Captured)) == 2 else None)
    assert {(one.capture, one.rank, bool(one.error)) for one in answers} == {("now", 3, False), ("much", 3, True)}


def test_helpers_have_no_worker(backend: NoFramework) -> None:
    backend.is_helper = True

    assert live.start_worker() is False


def test_the_rank_may_be_given_or_become_known_later(backend: NoFramework, proxy: FakeProxy, tmp_path: Path) -> None:
    assert live.start_worker()
    (worker,) = proxy.wait(1)
    assert worker.hello.rank == 0

    backend.step()
    backend.rank = 5
    backend.steps.identity_changed()
    until(lambda: worker.hello.rank == 5)
    until(lambda: worker.digests)
    assert live.start_worker(7, 100, "pt") is True  # the script knows better; still one worker
    until(lambda: worker.hello.rank == 7)
    live.stop_worker()

    written = tmp_path / "records" / "default_task_id"
    registered = -1
    for message in worker.said:
        if isinstance(message, Hello):
            registered = message.rank
        ranks = [one.rank for one in message.digests] if isinstance(message, Digests) else [message.rank]
        assert set(ranks) == {registered}  # a message about another rank is refused
    assert [(written / rank / "worker.json").exists() for rank in ("0", "5", "7")] == [True] * 3
    assert len(proxy.workers) == 1


def test_without_a_proxy_the_mounted_file_switches(
    backend: NoFramework, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, proxy: FakeProxy
) -> None:
    file = tmp_path / "profilingSwitch"
    file.write_text('{"Step":"off","FP":"off","DataLoader":"off","SaveCheckpoint":"off"}')
    monkeypatch.setenv("STEPSCOPE_LIVE_SWITCH_FILE", str(file))
    monkeypatch.setenv("STEPSCOPE_LIVE_SOCKET", str(tmp_path / "elsewhere.sock"))

    assert live.start_worker(0)
    until(lambda: not backend.steps.active)
    file.write_text('{"FP":"on"}')
    until(lambda: backend.steps.active)

    assert thread().switches.as_names() == ["fp"]
    file.write_text('{"FP":"yes"}')
    other = FakeProxy(tmp_path / "elsewhere.sock")
    (worker,) = other.wait(1)
    assert (worker.hello.revision, worker.hello.switches) == (0, ["fp"])
    file.write_text('{"FP":"off"}')  # now the manager follows the file
    worker.switch(1, ["step"])
    assert thread().switches.as_names() == ["step"]
    other.close()


def test_a_wrong_switch_is_refused_by_name_and_an_old_one_is_acknowledged(
    backend: NoFramework, proxy: FakeProxy
) -> None:
    assert live.start_worker(0)
    (worker,) = proxy.wait(1)

    wrong = worker.switch(3, ["stepp"])
    right = worker.switch(4, ["step"])
    again = worker.switch(4, ["fp"])

    assert "stepp" in wrong.error and wrong.switches == ["step", "fp", "dataloader", "checkpoint"]
    assert (right.revision, right.switches, right.error) == (4, ["step"], "")
    assert (again.revision, again.switches) == (4, ["step"])


def test_a_pulse_says_what_the_threads_are_in(backend: NoFramework, proxy: FakeProxy) -> None:
    detail = collective_text('"0"', 2, 4, "float32", None, is_async=False)
    backend.inside = [InProgress(COLLECTIVE, 0, "all_reduce", detail), InProgress(FORWARD, 0)]
    assert live.start_worker(0)
    (worker,) = proxy.wait(1)

    pulse = until(lambda: worker.of(Pulse))[0]

    call, forward = pulse.inside
    assert (call.mark, call.operation, call.group, call.calls_before) == ("collective", "all_reduce", "0", 0)
    assert (forward.mark, forward.operation, forward.calls_before) == ("forward", "", None)


def test_everything_is_on_disk_after_stopping(backend: NoFramework, tmp_path: Path) -> None:
    assert live.start_worker(0)
    for _ in range(5):
        backend.step()

    assert live.stop_worker() is True

    assert counts(ranges(tmp_path / "records")) == {"step": 5, "fp": 5}
    assert api.running() is None


def test_training_goes_on_if_records_cannot_be_written(backend: NoFramework, proxy: FakeProxy, tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file where the directory should be")
    assert live.start_worker(0)
    (worker,) = proxy.wait(1)

    for _ in range(3):
        backend.step()
    until(lambda: worker.of(Pulse) and worker.of(Pulse)[-1].problem)

    until(lambda: [one.step for one in worker.digests] == [1, 2, 3])


def test_steps_end_where_the_script_says_so(backend: NoFramework, proxy: FakeProxy, tmp_path: Path) -> None:
    assert live.start_worker(0)
    (worker,) = proxy.wait(1)

    for _ in range(4):
        backend.play(FORWARD)
        live.step()
    live.stop_worker()

    assert [one.name for one in ranges(tmp_path / "records") if kind_of(one) == "step"] == [
        f"step {number}" for number in range(1, 5)
    ]
    until(lambda: [one.step for one in worker.digests] == [1, 2, 3, 4])


def test_a_process_armed_by_the_environment_that_does_not_train_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environment = variables(tmp_path / "records", STEPSCOPE_LIVE="torch", PYTHONPATH=str(BOOTSTRAP))
    script = "import torch, sys; print('stepscope.live.worker.api' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n" and not (tmp_path / "records").exists()


@pytest.mark.parametrize("value", ["yes", "tensorflow"])
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    monkeypatch.setenv(LIVE_VARIABLE, value)

    with caplog.at_level(logging.ERROR):
        autostart.arm()

    assert f"{LIVE_VARIABLE}={value}" in caplog.text


def test_record_live_reports_what_was_traced(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "net = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for _ in range(4):\n"
        "    net(torch.ones(2, 2)).sum().backward()\n"
        "    optimizer.step()\n"
        "raise SystemExit(3)\n"
    )
    command = [sys.executable, "-m", "stepscope", "record", "--live", "-o", "out", "--", sys.executable, str(script)]

    done = subprocess.run(
        command, cwd=tmp_path, env=variables(tmp_path / "no"), capture_output=True, text=True, check=False
    )

    said = done.stderr.splitlines()[-1]
    assert done.returncode == 3
    assert "1 rank traced, 4 steps, 8 ranges in" in said
    assert f"next: stepscope analyze {tmp_path / 'out' / 'default_task_id'}" in said
    assert len(ranges(tmp_path / "out")) == 8


def thread() -> LiveThread:
    """The thread of the worker."""
    worker = api.running()
    assert worker is not None and worker.thread is not None and worker.process == os.getpid()
    return worker.thread


def test_a_worker_loads_nothing_heavy() -> None:
    heavy = ("polars", "numpy", "grpc", "google.protobuf", "asyncio", "typer", "rich", "torch", "mindspore")
    script = f"import sys, stepscope.live.worker.api; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
