"""A hand-edited file, a client of MindCluster's service, and the command switch one job: the last change wins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("grpc_tools")

from published_client import Client, generate
from running_job import workers_of

from ports import free_port
from stepscope.cli import main
from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, DEFAULT, NONE, Switches


def text(state: Switches) -> str:
    return json.dumps(state.as_guide())


class Job:
    """`stepscope live manager` as users start it, with the proxy of its node and three workers."""

    def __init__(self, room: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = file
        monkeypatch.setenv("STEPSCOPE_LIVE_SOCKET", str(room / "live.sock"))
        monkeypatch.setenv("STEPSCOPE_LIVE_STATE", str(room / "state"))
        monkeypatch.delenv("MINDX_TASK_ID", raising=False)
        self.address = f"127.0.0.1:{free_port()}"
        self._room, self._processes = room, [workers_of(room / "live.sock", 3)]
        self._capsys: Any = None
        self.start()

    def start(self) -> None:
        """Start the manager, also again."""
        command = [sys.executable, "-m", "stepscope", "live", "manager", "--port", self.address.rpartition(":")[2]]
        more = ["--proxy-port", str(free_port()), "--switch-file", str(self.file), "--no-escalate"]
        self.manager = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True, env={**os.environ})
        self._processes.append(self.manager)
        assert self.manager.stderr
        for line in self.manager.stderr:
            if "listens on" in line:
                break

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    (tmp_path / "profilingSwitch").write_text(text(DEFAULT))
    with tempfile.TemporaryDirectory(prefix="stepscope-") as room:  # paths of sockets must be short
        job = Job(Path(room), tmp_path / "profilingSwitch", monkeypatch)
        yield job
        job.end()


def test_the_last_change_wins_whichever_way_it_came(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*words: str) -> str:
        main(["live", "switch", *words, "--manager", job.address])
        return capsys.readouterr().out

    def until(holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for _ in range(300):
            shown = json.loads(command("--json") or "{}")
            if shown and holds(shown):
                return dict(shown)
            time.sleep(0.1)
        raise AssertionError(f"not within 30 s: {shown}")

    def applied(state: Switches) -> Callable[[dict[str, Any]], bool]:
        return lambda shown: shown["on"] == state.as_names() and shown["applied"] == 3

    generate(tmp_path / "client")
    assert until(applied(DEFAULT))["by"].startswith("file ")

    assert re.search("Applied by all 3 ranks", command("communication=on"))
    assert until(applied(ALL))["by"].count("@") == 1

    job.file.write_text(text(NONE))
    assert until(applied(NONE))["by"].startswith("file ")

    client = Client(tmp_path / "client", job.address)
    step = NONE.with_changes({Kind.STEP: True})
    assert client.call("modify", job="default/job-1", switch=step.as_guide())["code"] == 200
    assert until(applied(step))["by"].startswith("grpc ")
    assert client.call("modify", job="default/job-2", switch=step.as_guide())["code"] == 404

    job.file.write_text('{"Step":"On"}')
    time.sleep(1.2)
    assert until(applied(step))["by"].startswith("grpc ")

    job.manager.kill()
    job.manager.wait()
    job.file.write_text(text(NONE))  # as before the client's request, so it is no change
    job.start()
    assert until(applied(step))["revision"] == 4

    job.file.write_text(text(ALL))
    assert until(applied(ALL))["by"].startswith("file ")
    assert client.call("get", job="default/job-1")["on"] == ALL.as_guide()
    client.kill()
