"""Reading inputs by the workers of a Ray cluster, which put the rows into the store by themselves."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Generator, Sequence

import msgspec

from stepscope.errors import StepscopeError
from stepscope.ingest.pool import Outcome, died, outcome_of
from stepscope.ingest.read import ReadTask
from stepscope.ingest.worker import ANSWERS, Answer, NotLoaded, ReadOrder, Stored
from stepscope.processes import message_of
from stepscope.ray_workers import RayCluster, RayWorker, WorkerLost
from stepscope.sources.registry import all_sources
from stepscope.store import Store

_SERVE = "stepscope.ingest.worker:serving"

_Result = tuple[ReadTask, Outcome | NotLoaded] | BaseException | None
"""A task with its outcome, what stops all of it, or None when a thread is done."""


def read_in_cluster(
    tasks: Sequence[ReadTask], store: Store, cluster: RayCluster, most: int
) -> Generator[tuple[ReadTask, Outcome | NotLoaded], None, None]:
    """Read inputs into the store by workers of a Ray cluster; a worker that dies twice over an input costs that input.

    Args:
        tasks: What to read, the largest first.
        store: Where the rows go.
        cluster: Where the workers run.
        most: How many workers to use at most.

    Yields:
        Each task with its outcome, as they come; `NotLoaded` for what this process has to read itself.

    Raises:
        StepscopeError: If workers cannot be started, or a node has not the inputs or the store where this process has.
    """
    registered = all_sources()
    waiting = deque(task for task in tasks if task.source in registered)
    yield from ((task, NotLoaded()) for task in tasks if task.source not in registered)
    results: queue.SimpleQueue[_Result] = queue.SimpleQueue()

    def take_tasks(worker: RayWorker) -> None:
        try:
            while waiting:
                try:
                    task = waiting.popleft()
                except IndexError:  # another thread took it
                    break
                results.put((task, _read(task, store, worker)))
        except BaseException as error:  # raised below, in the calling thread
            waiting.clear()
            results.put(error)
        finally:
            results.put(None)

    busy = cluster.make_room()
    count = max(cluster.count - busy, 1)
    workers = [cluster.worker(_SERVE) for _ in range(min(count, most, len(waiting)))]
    threads = [threading.Thread(target=take_tasks, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                running -= 1
            else:
                yield result
    finally:
        waiting.clear()
        for worker in workers:
            worker.end()


def _read(task: ReadTask, store: Store, worker: RayWorker) -> Outcome | NotLoaded:
    order = ReadOrder(task.item, task.source.version, task.input_bytes, store.directory, task.key, workers=1)
    try:
        try:
            answer = _answer(order, worker)
        except WorkerLost:
            answer = _answer(order, worker)
    except WorkerLost as error:
        return died(task, str(error))
    found = outcome_of(answer, task, store)
    if isinstance(answer, Stored) and isinstance(found, Exception):
        raise StepscopeError(
            f"node {worker.node} wrote to another store than the one here at {store.directory}. Set STEPSCOPE_CACHE to "
            "a directory on storage that all nodes of the cluster share"
        )
    return found


def _answer(order: ReadOrder, worker: RayWorker) -> Answer:
    missing = worker.missing([os.fspath(path) for path in (order.store, *order.item.files)])
    if missing:
        what = "the store" if missing[0] == os.fspath(order.store) else "an input"
        remedy = "Set STEPSCOPE_CACHE to a directory" if what == "the store" else "Copy the inputs to a directory"
        raise StepscopeError(
            f"node {worker.node} has no {missing[0]} ({what}). {remedy} on storage that all nodes of the cluster share"
        )
    answer = worker.ask(message_of(order))
    try:
        return ANSWERS.decode(answer)
    except msgspec.MsgspecError as error:
        raise WorkerLost("sent something else") from error
