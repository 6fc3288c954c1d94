"""Starting `stepscope serve` and MindInsight on the same directories, asking them, and how much memory they take."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

START_S = 120.0
ANSWER_S = 300.0
_MARK = "STEPSCOPE_BENCHMARK_SERVER"


@dataclass(frozen=True)
class Memory:
    """What the processes of a server take, in bytes.

    Args:
        all_bytes: Of all of them; shared pages are divided among those that have them.
        largest_bytes: Resident memory of the largest.
        processes: How many there are.
    """

    all_bytes: int
    largest_bytes: int
    processes: int

    def __str__(self) -> str:
        largest = f"the largest {self.largest_bytes / 1e6:.0f} MB"
        return f"{self.all_bytes / 1e6:.0f} MB in {self.processes} processes, {largest}"


@dataclass(frozen=True)
class Answer:
    """An answer, and the seconds until all of it was there."""

    status: int
    body: bytes
    seconds: float

    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


@dataclass
class Served:
    """A server that runs.

    Args:
        base: Its address, without a slash at the end.
        mark: Stands in the environment of all its processes.
        first_s: Seconds from its start to its first page.
    """

    base: str
    mark: str
    first_s: float = 0.0

    def ask(self, path: str, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None) -> Answer:
        """Send a request; a POST if there is a body."""
        query = f"?{urlencode(params)}" if params else ""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}{path}{query}", data, {"Content-Type": "application/json"})
        start = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return Answer(answer.status, answer.read(), time.perf_counter() - start)
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read(), time.perf_counter() - start)

    def cpu_s(self) -> float:
        """Processor time of its processes so far, seconds; without those that have ended."""
        ticks = 0
        for folder in self._processes():
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> Memory:
        """What its processes take now."""
        sizes = [size for folder in self._processes() if (size := _size(folder)) is not None]
        return Memory(sum(shared for shared, _ in sizes), max((own for _, own in sizes), default=0), len(sizes))

    def _processes(self) -> Iterator[Path]:
        """The folders of its processes in `/proc`."""
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{_MARK}={self.mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    yield folder


def _size(folder: Path) -> tuple[int, int] | None:
    """Bytes of a process: its part of shared memory, and all that is resident."""
    with suppress(OSError):
        fields = (line.split() for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
        kilobytes = {each[0]: int(each[1]) for each in fields}
        return kilobytes["Pss:"] * 1024, kilobytes["Rss:"] * 1024
    return None


@contextmanager
def stepscope(directory: Path, cache: Path) -> Iterator[Served]:
    """Serve the runs below a directory; the server ends when the block does."""
    served = Served(f"http://127.0.0.1:{free_port()}", uuid.uuid4().hex)
    port = served.base.rpartition(":")[2]
    environment = {**os.environ, _MARK: served.mark, "STEPSCOPE_CACHE": str(cache)}
    start = time.perf_counter()
    command = [sys.executable, "-m", "stepscope", "serve", str(directory), "--port", port]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(served, "/", start, process)
        yield served
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_ready(served: Served, runs: int, limit_s: float = 3600.0) -> float:
    """Wait until stepscope has read and analysed so many runs; returns how many seconds that took."""
    start = time.perf_counter()
    while time.perf_counter() - start < limit_s:
        answer = served.ask("/api/v1/runs", {"top": 100})
        states = [run["state"] for run in answer.json()["runs"]] if answer.status == 200 else []
        if len(states) >= runs and all(state in ("ready", "failed") for state in states):
            return time.perf_counter() - start
        time.sleep(0.5)
    raise SystemExit(f"after {limit_s:.0f} s stepscope has not read {runs} runs: {served.base}")


@contextmanager
def mindinsight(commands: Path, directory: Path, room: Path) -> Iterator[Served]:
    """Serve the runs of a directory; the server writes into what it serves, so give it a copy.

    Args:
        commands: The `bin` directory of an environment with MindInsight.
        directory: Directory with runs, each with a `profiler/`.
        room: An empty directory for the server's own files.
    """
    served = Served(f"http://127.0.0.1:{free_port()}", uuid.uuid4().hex)
    port = served.base.rpartition(":")[2]
    path = f"{commands}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, _MARK: served.mark, "PATH": path}
    program = str(commands / "mindinsight")
    start = time.perf_counter()
    process = subprocess.Popen(
        [program, "start", "--summary-base-dir", str(directory), "--workspace", str(room), "--port", port],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(served, "/", start)
        yield served
    finally:
        stop = [program, "stop", "--port", port]
        subprocess.run(stop, env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.wait(60)


def copied(runs: Mapping[str, Path], directory: Path) -> Path:
    """Copies of runs, by name."""
    for name, run in runs.items():
        shutil.copytree(run, directory / name)
    return directory


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(served: Served, path: str, start: float, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for the first page."""
    while time.perf_counter() - start < START_S:
        if process is not None and process.poll() is not None:
            raise SystemExit(f"the server ended with status {process.returncode}")
        with suppress(OSError):
            if served.ask(path).status == 200:
                served.first_s = time.perf_counter() - start
                return
        time.sleep(0.02)
    raise SystemExit(f"no answer from {served.base} after {START_S:.0f} s")
