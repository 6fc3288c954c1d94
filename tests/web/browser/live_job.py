"""A job to watch in the browser: a real manager, and ranks that only say that they train, one of them slower."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stepscope.live.messages import Capture, Captured, Digest
from tests.web.browser.site import EXAMPLE, ROOT

sys.path.append(str(ROOT / "benchmarks"))

from simulated_workers import SimulatedWorker

RANKS, SLOW, SLOW_FROM = 4, 2, 40
"""Ranks, the one that becomes slow, and from which step on."""

MS = 1_000_000


@dataclass
class Worker(SimulatedWorker):
    """A rank whose forward pass is half of a step; the slow one needs twice as long for it, and the others wait."""

    def digest(self) -> Digest:
        """See `SimulatedWorker`."""
        jitter = 0.01 * ((self.step * 7 + self.rank * 3) % 5 - 2)
        is_slow = self.step >= SLOW_FROM
        forward_ns = int(20 * MS * (1 + jitter) * (2 if is_slow and self.rank == SLOW else 1))
        longest_ns = (40 if is_slow else 20) * MS
        waiting_ns = longest_ns - forward_ns
        step_ns = longest_ns + 20 * MS
        parts = {"forward_ns": forward_ns, "backward_ns": 10 * MS + waiting_ns, "data_ns": 2 * MS}
        return Digest(self.rank, self.step, time.time_ns(), step_ns, **parts)


class Job:
    """A manager, and ranks in a thread of this process; each of them may end and come back."""

    def __init__(self, room: Path, records: Path) -> None:
        self.room, self.records = room, records
        self.port, self._proxy_port = _free_port(), _free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.workers: dict[int, Worker] = {}
        self._running: dict[int, Future[None]] = {}
        self.start_manager()

    def start_manager(self) -> None:
        """Start the manager, for the first time or again."""
        command = ["live", "manager", "--port", str(self.port), "--proxy-port", str(self._proxy_port), "--no-escalate"]
        places = {"STEPSCOPE_LIVE_STATE": str(self.room / "state"), "STEPSCOPE_LIVE_SOCKET": str(self._socket)}
        with (self.room / "manager.log").open("ab") as log:
            self.manager = subprocess.Popen(
                [sys.executable, "-m", "stepscope", *command], env={**os.environ, **places}, stdout=log, stderr=log
            )

    def kill_manager(self) -> None:
        """End it as a crash would."""
        self.manager.kill()
        self.manager.wait()

    def start_rank(self, rank: int) -> None:
        """Let a rank train."""
        worker = Worker(
            rank, self._socket, job="demo", world_size=RANKS, steps_a_second=25, pid=1000 + rank, retry_s=0.1
        )
        worker.answers[Capture] = lambda asked: self._captured(rank, asked)
        self.workers[rank] = worker
        self._running[rank] = asyncio.run_coroutine_threadsafe(worker.run(), self._loop)

    def end_rank(self, rank: int) -> None:
        """End a rank as a crash would."""
        self._running.pop(rank).cancel()

    def close(self) -> None:
        """End all of it."""
        for rank in list(self._running):
            self.end_rank(rank)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.1), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.kill_manager()

    @property
    def _socket(self) -> Path:
        return self.room / "live.sock"

    def _captured(self, rank: int, asked: Capture) -> Captured:
        """What a rank leaves when it is profiled: here the recording of a rank of the example."""
        directory = self.records / "demo" / str(rank) / "captures" / asked.capture
        target = directory / "recording" / f"rank-{rank}"
        target.mkdir(parents=True)
        trace = next(EXAMPLE.glob(f"rank-{rank}*"))
        shutil.copy(trace, target)
        steps = [asked.first_step, asked.first_step + asked.steps - 1]
        return Captured(rank, asked.capture, [str(target / trace.name)], steps, directory=str(directory))


@contextmanager
def watched_job(records: Path) -> Iterator[Job]:
    """A job whose profiles come below a directory."""
    with tempfile.TemporaryDirectory(prefix="live-") as room:  # the paths of pytest are too long for sockets
        job = Job(Path(room), records)
        try:
            for rank in range(RANKS):
                job.start_rank(rank)
            yield job
        finally:
            with suppress(ProcessLookupError):
                job.close()


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])
