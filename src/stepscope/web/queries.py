"""SQL queries of clients, each answered by a process apart, which is ended if it takes too long or too much memory."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress

import msgspec
import polars as pl

from stepscope.errors import StepscopeError
from stepscope.ingest.inputs import worker_count
from stepscope.processes import WorkerProcess, receive, send, starting
from stepscope.web.catalogue.orders import RunOrder
from stepscope.web.query_worker import ANSWERS, QueryOrder, Rows

LONGEST_S = 60.0
"""How long a query may take, chosen by us."""

_IDLE_S = 60.0
"""A process that was not asked for so long is ended."""

_START = starting("stepscope.web.query_worker:main")


class Queries:
    """Answers queries, by a process for each that is asked at the same time; any thread may ask.

    Args:
        longest_s: Seconds that a query may take.
    """

    def __init__(self, longest_s: float = LONGEST_S) -> None:
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._started: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
        self._is_closed = False
        self._timer: threading.Timer | None = None

    def query(self, run: RunOrder, sql: str) -> pl.DataFrame:
        """The answer to a query over the tables of a run.

        Raises:
            StepscopeError: If it asks for anything but these tables, or takes too long or too much memory.
        """
        process = self._taken()
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            process.process.kill()

        late = threading.Timer(self._longest_s, stop)
        late.daemon = True
        try:
            if process not in self._started:
                receive(process.stdout)  # it is ready; how long its start took is no fault of the query
                self._started.add(process)
            late.start()
            send(process.stdin, QueryOrder(run, sql))
            answer = ANSWERS.decode(receive(process.stdout))
        except (EOFError, OSError, msgspec.MsgspecError):
            self._end(process)
            if is_late.is_set():
                problem = f"the query took longer than {self._longest_s:g} s, so it was stopped"
            elif self._is_closed:
                problem = "the server is being stopped"
            else:
                problem = "the query needed more memory than it may take, so it was stopped"
            raise StepscopeError(f"{problem}. Ask for fewer rows, e.g. with WHERE, or join fewer tables") from None
        finally:
            late.cancel()
        if is_late.is_set():  # it was stopped just as it had answered
            self._end(process)
        else:
            self._give_back(process)
        if isinstance(answer, Rows):
            return pl.read_ipc_stream(answer.content)
        raise StepscopeError(answer.problem)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed, processes = True, [*self._idle, *self._busy]
            self._idle.clear()
            if self._timer is not None:
                self._timer.cancel()
        for process in processes:
            with suppress(OSError):
                process.process.kill()

    def _taken(self) -> WorkerProcess:
        with self._lock:
            if self._is_closed:
                raise StepscopeError("the server is being stopped. Start it again")
            try:
                process = self._idle.pop() if self._idle else WorkerProcess(_START, worker_count())
            except OSError as error:
                raise StepscopeError(f"no process for queries can be started ({error}). Free some memory") from error
            self._busy.add(process)
            return process

    def _give_back(self, process: WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(process)
            if not self._is_closed:
                self._idle.append(process)
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = threading.Timer(_IDLE_S, self._end_idle)
                self._timer.daemon = True
                self._timer.start()
                return
        process.end()

    def _end_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _end(self, process: WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(process)
        process.end()
