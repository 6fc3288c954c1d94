"""The command `stepscope serve` in a process of its own, as a user starts it."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ASSETS = f"/_nicegui/{version('nicegui') if find_spec('nicegui') else ''}/static"
"""Where the files of NiceGUI are."""


class Served:
    """A running command.

    Args:
        process: It.
        port: Where it listens.
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.port = int(url.rpartition(":")[2].strip("/"))

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            named = {name.lower(): text for name, text in answer.getheaders()}
            return answer.status, named, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def end(self, number: int = signal.SIGINT) -> tuple[int, float, str]:
        """Send a signal; exit code, seconds until the end, and what was printed to standard error."""
        began = time.monotonic()
        self.process.send_signal(number)
        err = self.process.communicate(timeout=60)[1]
        return self.process.returncode, time.monotonic() - began, err


@contextmanager
def serving(directory: Path, *words: object, code: str = "", **environment: str) -> Iterator[Served]:
    """The command, from a directory of its own, once it has printed its address.

    Args:
        code: Python that is run first in the process.
    """
    program = f"{code}\nimport sys\nfrom stepscope.cli import main\nsys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", *map(str, words), "--port", "0"],
        cwd=directory,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), process.communicate()[1]
        yield Served(process, url)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
