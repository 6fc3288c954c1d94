"""Tasks in worker processes, for analyses that hold Python's interpreter lock for long and runs with many ranks."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from stepscope.processes import WorkerProcess, receive, send, starting
from stepscope.run.engine.messages import MOST_RUNS, Order
from stepscope.run.engine.threads import Threads
from stepscope.run.engine.workers import Worker, WorkerLost, Workers

_START = starting("stepscope.run.worker:main")


class Processes(Workers):
    """Runs tasks in worker processes, which start with the first question and end with this object or this process.

    Workers read the rows from the store. Questions about rows in memory, and analyses defined in a notebook, in the
    main script or inside a function, run in this process. Answers are the same wherever they are computed. A worker
    imports a module once: after reloading one in this process, `close` the workers.

    Args:
        count: Number of processes. Default: one per core.
    """

    def __init__(self, count: int | None = None) -> None:
        super().__init__()
        self._threads = Threads((os.cpu_count() or 1) if count is None else count)
        self.count = self._threads.count
        self._workers = [_Worker(max(1, (os.cpu_count() or 1) // self.count)) for _ in range(self.count)]

    def workers(self) -> tuple[Threads, Sequence[Worker]]:
        """See `Workers`."""
        return self._threads, self._workers


class _Worker(Worker):
    """One worker process, started when needed, and the runs that it has."""

    def __init__(self, threads: int) -> None:
        self._polars_threads = threads
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._runs: list[int] = []

    def reply(self, order: Order) -> bytes:
        """See `Worker`."""
        with self._lock:
            try:
                return self._exchange(order)
            except (EOFError, OSError, msgspec.MsgspecError) as error:
                how = "sent something else" if self._process is None else f"died ({self._process.death()})"
                self._end()
                raise WorkerLost(how) from error
            except BaseException:  # interrupted: a late reply must not be taken for the next answer
                self._end()
                raise

    def close(self) -> None:
        """End the process after its current task."""
        with self._lock:
            self._end()

    def _exchange(self, order: Order) -> bytes:
        if self._process is None or self._process.process.poll() is not None:  # e.g. killed while it waited
            self._end()
            self._process, self._runs = WorkerProcess(_START, self._polars_threads), []
        if order.run.id not in self._runs:
            send(self._process.stdin, order.run)
            self._runs = [*self._runs, order.run.id][-MOST_RUNS:]
        send(self._process.stdin, order.ask)
        return receive(self._process.stdout)

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = None

    def __del__(self) -> None:
        with suppress(Exception):  # also while the interpreter ends
            self._end()
