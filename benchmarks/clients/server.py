"""A MindInsight server on a copy of an output directory, and requests to it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RUN = "./run"
START_S = 60
"""How long the server may take to list the run."""


class Server:
    """Sends requests.

    Args:
        port: Where it listens on this host.
    """

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/v1/mindinsight"

    def ask(self, path: str, params: dict[str, Any], body: dict[str, Any] | None) -> tuple[int, bytes]:
        """The status and the text of an answer. With a body the request is a POST."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self._base}/{path}?{urllib.parse.urlencode(params)}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextmanager
def serving(commands: Path, profiler: Path, room: Path) -> Iterator[Server]:
    """Serve a copy of `profiler`, since the server writes into what it serves; the raw data is not copied.

    Args:
        commands: The `bin` directory of an environment with MindInsight.
        profiler: A `profiler` directory.
        room: An empty directory for the copy and the server's own files.
    """
    shutil.copytree(profiler, room / "summary" / RUN / "profiler", ignore=shutil.ignore_patterns("recording"))
    port = _free_port()
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(commands / "mindinsight")]
    start = ["start", "--summary-base-dir", str(room / "summary"), "--workspace", str(room / "workspace")]
    subprocess.run([*command, *start, "--port", str(port)], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        server = Server(port)
        _wait(server)
        yield server
    finally:
        stop = [*command, "stop", "--port", str(port)]
        subprocess.run(stop, env=environment, check=False, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: Server) -> None:
    """Wait until the run is listed as one with profiles.

    Raises:
        SystemExit: If it is not, in time.
    """
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        status, text = server.ask("datavisual/train-jobs", {"offset": 0, "limit": 10}, None)
        jobs = json.loads(text).get("train_jobs", []) if status == 200 else []
        if any(job["train_id"] == RUN and job["profiler_type"] for job in jobs):
            return
        time.sleep(0.5)
    raise SystemExit("MindInsight does not list the run: profiler_info or operator files are missing")
