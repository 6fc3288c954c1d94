"""Reading several inputs at a time, so that a reader that dies takes nothing but its own input with it."""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress

from stepscope.ingest.read import Task
from stepscope.ingest.worker import LoadError
from stepscope.sources.discover import Unread
from stepscope.store import Recording, Store, StoreError

_START = "import sys; sys.path[:] = sys.argv[1:]; from stepscope.ingest.worker import main; main()"

Outcome = Recording | Unread | StoreError


def read_in_processes(
    tasks: Sequence[Task], store: Store, count: int, threads: int
) -> Generator[tuple[Task, Outcome | LoadError], None, None]:
    """Read inputs into the store by several processes.

    Args:
        tasks: What to read, the largest first.
        store: Where the rows go.
        count: Number of processes.
        threads: How many threads or processes each of them may use.

    Yields:
        Each task with its outcome, as they come; `LoadError` for what this process has to read itself.
    """
    waiting: deque[tuple[Task, bytes]] = deque()
    for task in tasks:
        try:
            waiting.append((task, pickle.dumps((task, store, threads))))
        except Exception as error:
            yield task, LoadError(str(error))
    with selectors.DefaultSelector() as selector:

        def start_next() -> None:
            worker = _Worker(threads)
            selector.register(worker.stdout, selectors.EVENT_READ, worker)
            worker.give(*waiting.popleft())

        try:
            for _ in range(min(count, len(waiting))):
                start_next()
            while selector.get_map():
                for key, _ in selector.select():
                    worker: _Worker = key.data
                    outcome = worker.receive()
                    if isinstance(outcome, str):
                        continue
                    yield worker.task, worker.explain_death() if outcome is None else outcome
                    if outcome is not None and waiting:
                        worker.give(*waiting.popleft())
                        continue
                    selector.unregister(worker.stdout)
                    worker.end()
                    if waiting:
                        start_next()
        finally:
            for key in list(selector.get_map().values()):
                key.data.end()


class _Worker:
    """One process and the task it is at."""

    task: Task

    def __init__(self, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A crash shows as an issue of its input; the noise of it is for those who look for the bug.
            stderr=None if os.environ.get("STEPSCOPE_DEBUG") else subprocess.DEVNULL,
            env={**os.environ, "POLARS_MAX_THREADS": str(threads)},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.ready = False

    def give(self, task: Task, message: bytes) -> None:
        """Hand it a task; if it is dead by now, `receive` will tell."""
        self.task = task
        with suppress(OSError):
            pickle.dump(message, self.stdin)
            self.stdin.flush()

    def receive(self) -> Outcome | LoadError | str | None:
        """The outcome of its task, a greeting before the first one, or None if it died."""
        try:
            outcome: Outcome | LoadError | str = pickle.load(self.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            return None
        self.ready = True
        return outcome

    def explain_death(self) -> Unread | LoadError:
        """What to say about the task over which it died."""
        if not self.ready:
            return LoadError("the worker did not start")
        status = self.process.wait()
        how = f"exit status {status}"
        with suppress(ValueError):
            how = signal.Signals(-status).name
        return Unread(
            str(self.task.item.path),
            f"the process that read it died ({how})",
            "If memory ran out, set STEPSCOPE_WORKERS=1; else please report it with the output of --debug",
        )

    def end(self) -> None:
        """End the process and wait for it."""
        self.process.kill()
        with suppress(OSError):
            self.stdin.close()
        self.stdout.close()
        self.process.wait()
