"""Reading several inputs at a time, so that a reader that dies takes nothing but its own input with it."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress

import msgspec

from stepscope.ingest.read import ReadTask
from stepscope.ingest.worker import ANSWERS, Advanced, Answer, NotLoaded, ReadOrder, ReadRefused, Stored, StoreFailed
from stepscope.processes import WorkerProcess, receive, send, starting
from stepscope.sources.registry import all_sources
from stepscope.store import Recording, Store, StoreError
from stepscope.tables.issues import Issue

_START = starting("stepscope.ingest.worker:main")

Outcome = Recording | Issue | StoreError

_REMOVED = "an entry was removed as soon as it was written"


def read_in_processes(
    tasks: Sequence[ReadTask],
    store: Store,
    count: int,
    threads: int,
    advance: Callable[[ReadTask, int], None],
) -> Generator[tuple[ReadTask, Outcome | NotLoaded], None, None]:
    """Read inputs into the store by several processes.

    Args:
        tasks: What to read, the largest first.
        store: Where the rows go.
        count: Number of processes.
        threads: How many threads or processes each of them may use.
        advance: Called with a task and the number of bytes read since the last call.

    Yields:
        Each task with its outcome, as they come; `NotLoaded` for what this process has to read itself.
    """
    registered = all_sources()
    waiting = deque(task for task in tasks if task.source in registered)
    yield from ((task, NotLoaded()) for task in tasks if task.source not in registered)
    with selectors.DefaultSelector() as selector:

        def start_one() -> None:
            with suppress(OSError):  # without any worker, all is left to this process
                worker = _Worker(threads)
                selector.register(worker.stdout, selectors.EVENT_READ, worker)

        try:
            for _ in range(min(count, len(waiting))):
                start_one()
            while selector.get_map():
                for key, _ in selector.select():
                    worker: _Worker = key.data
                    answer = worker.receive()
                    if isinstance(answer, Advanced):
                        if worker.task is not None:
                            advance(worker.task, answer.count)
                        continue
                    if worker.task is not None:
                        task = worker.task
                        yield task, worker.explain_death(task) if answer is None else outcome_of(answer, task, store)
                    if answer is not None and waiting:
                        worker.give(waiting.popleft(), store)
                        continue
                    selector.unregister(worker.stdout)
                    worker.end()
                    if worker.task is not None and waiting:
                        start_one()
        finally:
            for key in list(selector.get_map().values()):
                key.data.end()
    yield from ((task, NotLoaded()) for task in waiting)


def died(task: ReadTask, how: str) -> Issue:
    """The issue of an input over which the process that read it died."""
    return Issue(
        "error",
        str(task.item.path),
        f"the process that read it as {task.source.name} died ({how})",
        "If memory ran out, set STEPSCOPE_WORKERS=1; otherwise report this with the output of --debug",
    )


def outcome_of(answer: Answer, task: ReadTask, store: Store) -> Outcome | NotLoaded:
    """What has become of a task, by the answer of its worker."""
    match answer:
        case Stored():
            return store.find(task.key) or StoreError(_REMOVED)
        case ReadRefused(unread):
            return unread
        case StoreFailed(problem):
            return StoreError(problem)
        case _:
            return NotLoaded()


class _Worker(WorkerProcess):
    """One process and the task it is at, if it has come that far."""

    def __init__(self, threads: int) -> None:
        super().__init__(_START, threads)
        self.threads = threads
        self.task: ReadTask | None = None

    def give(self, task: ReadTask, store: Store) -> None:
        """Send it a task; if it is dead, `receive` will notice."""
        self.task = task
        order = ReadOrder(task.item, task.source.version, task.input_bytes, store.directory, task.key, self.threads)
        with suppress(OSError):
            send(self.stdin, order)

    def receive(self) -> Answer | None:
        """Its greeting, then one answer to each task; None if it died or sent something else."""
        try:
            return ANSWERS.decode(receive(self.stdout))
        except (EOFError, OSError):
            return None
        except msgspec.MsgspecError:
            self.process.kill()
            return None

    def explain_death(self, task: ReadTask) -> Issue:
        """The issue of the task over which it died."""
        return died(task, self.death())
