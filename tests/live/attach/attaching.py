"""Processes to attach to, and the ways in which tests have them run the injected line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PATIENCE_S = 60.0


@cache
def why_not_gdb() -> str:
    """Why tests cannot attach with gdb here; empty if they can."""
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        done = subprocess.run(
            ["gdb", "-nx", "-batch", "-p", str(child.pid), "-ex", "detach"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        child.kill()
        child.wait()
    return "" if "detached" in done.stdout else "this system does not let gdb attach"


class Script:
    """A running script that answers `SIGUSR1` with a line of JSON about itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def wait_until_ready(self) -> None:
        """Wait for its first line."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready"

    def look(self) -> dict[str, Any]:
        """What it says about itself now."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGUSR1)
        content: dict[str, Any] = json.loads(self.process.stdout.readline())
        return content


@contextmanager
def script(name: str, *arguments: str, python: str = sys.executable, **environment: str) -> Iterator[Script]:
    """Run one of the scripts beside this file, until the block ends."""
    process = subprocess.Popen(
        [python, str(HERE / name), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    running = Script(process)
    try:
        running.wait_until_ready()
        yield running
    finally:
        process.kill()
        process.communicate()


def by_signal(process: Any, room: Path, method: str) -> Any:
    """Instead of a debugger: the scripts run the file that they find in `STEPSCOPE_TEST_LINE` on `SIGUSR2`."""
    from stepscope.live.attach.injection import Injected, line

    place = Path(process.environment()["STEPSCOPE_TEST_LINE"])
    place.write_text(line(room))
    os.kill(process.pid, signal.SIGUSR2)
    return Injected("signal")


def stepscope(*words: str, patience_s: float = PATIENCE_S) -> tuple[int, str]:
    """Run the command; returns its exit code and what it printed on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", *words], capture_output=True, text=True, timeout=patience_s, check=False
    )
    return done.returncode, done.stderr


def wait_for(condition: Any, patience_s: float = 10.0) -> None:
    """Wait until a condition holds."""
    until_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(0.05)


def lasting(look: dict[str, Any]) -> dict[str, Any]:
    """What a script says about itself, without what changes as it runs. Python keeps empty places of exit handlers."""
    return {name: value for name, value in look.items() if name not in ("steps", "exits", "rss_kb", "objects")}


def rows(file: Path) -> Sequence[list[str]]:
    """The rows of a CSV file of a recording, without its header."""
    return [line.split(",") for line in file.read_text().splitlines()[1:]]
