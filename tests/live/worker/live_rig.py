"""A stand-in for the proxy of a node, and reading what a live worker has written."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from stepscope.live import messages
from stepscope.live.messages import Applied, Apply, Digest, Digests, FromWorker, Hello, Message

SOURCE = Path(__file__).parents[3] / "src"
BOOTSTRAP = SOURCE / "stepscope" / "record" / "bootstrap"
PATIENCE_S = 60.0
_T = TypeVar("_T", bound=Message)


@dataclass
class Connected:
    """One worker on the link."""

    link: socket.socket
    said: list[FromWorker] = field(default_factory=list)
    is_gone: bool = False

    def of(self, kind: type[_T]) -> list[_T]:
        """Its messages of a kind."""
        return [message for message in list(self.said) if isinstance(message, kind)]

    @property
    def hello(self) -> Hello:
        """How it registered last."""
        return self.of(Hello)[-1]

    @property
    def digests(self) -> list[Digest]:
        """All its digests."""
        return [digest for message in self.of(Digests) for digest in message.digests]

    def send(self, message: Message) -> None:
        """Send it a message."""
        self.link.sendall(messages.line_of(message))

    def switch(self, revision: int, names: list[str]) -> Applied:
        """Switch it, and return its answer once that is here."""
        self.send(Apply(revision, names))
        return until(lambda: next((one for one in self.of(Applied) if one.revision == revision), None))


class FakeProxy:
    """Accepts workers on a Unix socket and keeps what they say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workers: list[Connected] = []
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def wait(self, count: int) -> list[Connected]:
        """So many workers that have registered, by rank."""

        def found() -> list[Connected] | None:
            known = [one for one in self.workers if one.of(Hello)]
            return sorted(known, key=lambda one: one.hello.rank) if len(known) >= count else None

        return until(found)

    def close(self) -> None:
        """End all links, as if the proxy was killed."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # else a thread that waits in `accept` keeps it open
        self._server.close()
        for worker in self.workers:
            with suppress(OSError):
                worker.link.shutdown(socket.SHUT_RDWR)
            worker.link.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            worker = Connected(link)
            self.workers.append(worker)
            threading.Thread(target=self._read, args=(worker,), daemon=True).start()

    def _read(self, worker: Connected) -> None:
        try:
            for line in worker.link.makefile("rb"):
                worker.said.append(messages.from_worker(line))
        except (OSError, ValueError):
            pass
        worker.is_gone = True


def until(found: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait for something that is true, and return it."""
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        value = found()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


@dataclass
class Range:
    """One range on disk, ns."""

    name: str
    domain: str
    start_ns: int
    end_ns: int
    rows: list[dict[str, Any]]


def ranges(base: Path, rank: int | str = 0) -> list[Range]:
    """The ranges of a rank below a base directory with one job; every line must be valid and every range complete."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for file in sorted(base.glob(f"*/{rank}/[0-9]*")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            rows.setdefault(row["Id"], []).append(row)
    return [_range(several) for several in rows.values()]


def counts(found: list[Range]) -> Counter[str]:
    """Ranges by kind of range."""
    return Counter(kind_of(one) for one in found)


def kind_of(one: Range) -> str:
    """The name of its switch."""
    if one.domain == "communication":
        return "communication"
    names = {"forward": "fp", "dataloader": "dataloader", "save_checkpoint": "checkpoint"}
    return names.get(one.name, "step" if one.name.startswith("step ") else f"? {one.name}")


def _range(rows: list[dict[str, Any]]) -> Range:
    assert len(rows) in (2, 4), rows
    start, end = rows[:2]
    assert (start["Flag"], end["Flag"]) in ((2, 4), (16, 32)), rows
    return Range(start["Name"], start["Domain"], start["Timestamp"], end["Timestamp"], rows)


def variables(base: Path, **more: str) -> dict[str, str]:
    """The environment of a training process that traces below `base`."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "MS_", "STEPSCOPE_", "COV", "MINDX"))}
    paths = [more.pop("PYTHONPATH", ""), str(SOURCE), given.get("PYTHONPATH", "")]
    own = {
        "STEPSCOPE_LIVE_DIR": str(base),
        "STEPSCOPE_LIVE_SOCKET": str(base.parent / "proxy.sock"),
        "GLOO_SOCKET_IFNAME": "lo",
        "GLOG_v": "3",
    }
    return {**given, **own, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


class Training:
    """A training process that takes so many steps for each line that it is given."""

    def __init__(self, script: Path, base: Path, *arguments: str, **more: str) -> None:
        command = [sys.executable, str(script), *arguments]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=variables(base, **more), **pipes)
        STARTED.append(self)

    def ask(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """What it says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        """Let it end; return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


STARTED: list[Training] = []
"""The trainings of a test."""


def train(several: list[Training], line: str) -> list[str]:
    """Give all a line, and return their answers."""
    for one in several:
        one.ask(line)
    return [one.answer() for one in several]


def proxy_in(room: Path) -> Iterator[FakeProxy]:
    """For a fixture."""
    made = FakeProxy(room / "proxy.sock")
    yield made
    made.close()
