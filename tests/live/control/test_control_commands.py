"""The commands that serve a job and a node, as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from ports import free_port
from stepscope.live.control.client import Client, call
from stepscope.live.control.client import Switched as Answer


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for sockets and state of the test's own."""
    with tempfile.TemporaryDirectory(prefix="live-") as name:
        for variable in ("STEPSCOPE_LIVE_SOCKET", "STEPSCOPE_LIVE_MANAGER", "MASTER_ADDR", "MINDX_TASK_ID"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        monkeypatch.setenv("STEPSCOPE_LIVE_STATE", f"{name}/state")
        yield Path(name)


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stepscope", "live", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepscope", "live", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    return process.returncode, said


def switched(port: int, timeout_s: float = 20.0) -> Answer:
    """Switch as soon as the manager answers."""
    until = time.monotonic() + timeout_s

    async def ask(client: Client) -> Answer:
        return await client.switch({"step": "off"})

    while True:
        try:
            return call(ask, f"127.0.0.1:{port}", job="job")
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_a_manager_serves_until_it_is_told_to_end_and_keeps_the_switches(room: Path) -> None:
    port, node = free_port(), free_port()
    words = ("manager", "--job", "job", "--port", str(port), "--proxy-port", str(node))
    events = room / "events.jsonl"

    first = start(*words, "--events", str(events))
    revision = switched(port).revision
    refused = ran(*words)
    of_node = ran("manager", "--job", "job", "--port", str(free_port()), "--proxy-port", str(node))
    code, said = end(first, signal.SIGTERM)
    second = start(*words)
    again = switched(port).revision
    interrupted, _ = end(second, signal.SIGINT)

    assert (revision, again) == (1, 1)
    assert (code, interrupted) == (0, 0)
    assert f"manager of job job listens on 127.0.0.1:{port}" in said
    assert refused.returncode == 2 and f"127.0.0.1:{port}: cannot listen there" in refused.stderr
    assert of_node.returncode == 2 and "choose another port with --proxy-port" in " ".join(of_node.stderr.split())
    assert "GRPC_VERBOSITY" not in refused.stderr and "add_port" not in refused.stderr
    assert "Traceback" not in said + refused.stderr
    assert '"switch_requested"' in events.read_text()


def test_a_proxy_starts_before_its_manager_and_ends_cleanly(room: Path) -> None:
    port = free_port()
    process = start("proxy", "--manager", f"127.0.0.1:{port}", "--port", str(free_port()))
    assert process.stderr is not None
    ready = next(line for line in process.stderr if "serves workers" in line)
    code, said = end(process, signal.SIGTERM)

    assert code == 0
    assert f"manager: 127.0.0.1:{port}" in ready and "Traceback" not in said


def test_a_manager_beyond_loopback_without_secrets_does_not_start(room: Path) -> None:
    refused = ran("manager", "--host", "0.0.0.0", "--port", "0")

    assert refused.returncode == 2
    assert "0.0.0.0 can be reached from other machines" in refused.stderr
