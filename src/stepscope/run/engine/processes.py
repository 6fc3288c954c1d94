"""Tasks in worker processes, for analyses that hold Python's interpreter lock for long and runs with many ranks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from stepscope.errors import StepscopeError
from stepscope.processes import WorkerProcess, decoder, receive, send, starting
from stepscope.run.engine.base import PartAnswer, Task
from stepscope.run.engine.messages import MOST_RUNS, Failed, Order, Reply, error_of, frame_of
from stepscope.run.engine.threads import Threads

_START = starting("stepscope.run.worker:main")
_REPLIES: msgspec.msgpack.Decoder[Reply] = decoder(Reply)


class Processes:
    """Runs tasks in worker processes, which start with the first question and end with this object or this process.

    Workers read the rows from the store. Questions about rows in memory, and analyses defined in a notebook, in the
    main script or inside a function, run in this process. Answers are the same wherever they are computed. A worker
    imports a module once: after reloading one in this process, `close` the workers.

    Args:
        count: Number of processes. Default: one per core.
    """

    def __init__(self, count: int | None = None) -> None:
        self._threads = Threads((os.cpu_count() or 1) if count is None else count)
        self.count = self._threads.count
        self._workers = [_Worker(max(1, (os.cpu_count() or 1) // self.count)) for _ in range(self.count)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; another question starts new ones."""
        for worker in self._workers:
            worker.close()

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """See `Engine`."""

        def carry_out(numbered: tuple[int, Task]) -> PartAnswer:
            number, task = numbered
            order = task.order()
            # the same ranks go to the same process, which has their earlier answers
            result = task.here() if order is None else self._workers[number % self.count].ask(order)
            done(task)
            return result

        return self._threads.each(carry_out, list(enumerate(tasks)))


class _Worker:
    """One worker process, started when needed, and the runs that it has."""

    def __init__(self, threads: int) -> None:
        self._polars_threads = threads
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._runs: list[int] = []

    def ask(self, order: Order) -> PartAnswer:
        """Its answer to an order; raises `StepscopeError` if the question fails, or the process dies."""
        with self._lock:
            try:
                reply = _REPLIES.decode(self._exchange(order))
            except (EOFError, OSError, msgspec.MsgspecError) as error:
                how = "sent something else" if self._process is None else f"died ({self._process.death()})"
                self._end()
                raise StepscopeError(
                    f"{order.ask.question}: the process that computed it {how}. If memory ran out, use fewer processes"
                ) from error
            except BaseException:  # interrupted: a late reply must not be taken for the next answer
                self._end()
                raise
        if isinstance(reply, Failed):
            raise _Failure(reply.problem, reply.trace) if reply.trace else StepscopeError(reply.problem)
        frame = None if reply.rows is None else frame_of(reply.rows)
        return PartAnswer(reply.ranks, frame, {rank: error_of(reason) for rank, reason in reply.silent.items()})

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


class _Failure(Exception):
    """A bug in an analysis in another process, with its traceback there."""

    def __init__(self, problem: str, trace: str) -> None:
        super().__init__(f"{problem}\n\nIn the process that computed it:\n{trace}")
