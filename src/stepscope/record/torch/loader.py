"""The input pipeline: batches that the training loop takes from a `DataLoader`."""

from __future__ import annotations

import functools
import os
import weakref
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.record.epochs import Epochs
from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch.hook import Hook
from stepscope.recording_format.marks import DATA

WORKER_VARIABLE = "STEPSCOPE_DATA_WORKER"
"""Set in the environment of a loader's workers: a spawned worker runs the script before it knows that it is one."""

Queue = tuple["int | None", "int | None", "int | None"]


class LoaderHooks(Hook):
    """Marks waits for data.

    Args:
        marks: Whether to record waits and batches; epochs are always reported.
    """

    subject = "waits for data"
    kind = DATA

    def __init__(self, steps: StepTracker, patches: Patches, *, marks: bool) -> None:
        super().__init__(steps, patches)
        self._marks = marks
        self.epochs = Epochs(steps)
        self._iterators: weakref.WeakSet[Any] = weakref.WeakSet()

    def attach(self) -> None:
        """Wrap the method with which all loaders return a batch."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        original, hook, steps, taken = vars(_BaseDataLoaderIter)["__next__"], self, self.steps, self._taken
        marks, epochs, inside = self._marks, self.epochs, self.inside

        @functools.wraps(original)
        def __next__(self: Any) -> Any:  # noqa: N807 - its name in tracebacks
            if hook.off:
                return original(self)
            if not self._num_yielded:
                hook.attempt(epochs.begins, self._dataset)
            wanted = marks and DATA in steps.wanted
            thread = get_ident()
            if wanted:
                start_ns = perf_counter_ns()
                inside[thread] = start_ns, None, (), {}
            try:
                if wanted and steps.awaits_activity:
                    start_ns = hook.begins(DATA)
                batch = original(self)
            except StopIteration:
                hook.attempt(epochs.ends, self._dataset)
                raise
            finally:
                inside.pop(thread, None)
            if not wanted:
                return batch
            try:
                taken(self, start_ns, perf_counter_ns())
            except Exception as error:
                hook.failed(error)
            return batch

        self.patches.put(_BaseDataLoaderIter, "__next__", __next__)
        self._mark_workers()

    def worker_pids(self) -> dict[int, str]:
        """Worker processes of the loaders in use, with names. May be called from any thread."""
        found: dict[int, str] = {}
        for iterator in list(self._iterators):
            if getattr(iterator, "_shutdown", False):
                continue
            for number, worker in enumerate(getattr(iterator, "_workers", ())):
                if worker.pid is not None:
                    found[worker.pid] = f"{_pipeline(iterator)} worker {number}"
        return found

    def _mark_workers(self) -> None:
        """Mark worker processes of loaders as such from their start."""
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        original = vars(_MultiProcessingDataLoaderIter)["__init__"]

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            before = os.environ.get(WORKER_VARIABLE)
            os.environ[WORKER_VARIABLE] = "1"
            try:
                original(self, *args, **kwargs)
            finally:
                if before is None:
                    os.environ.pop(WORKER_VARIABLE, None)

        self.patches.put(_MultiProcessingDataLoaderIter, "__init__", __init__)

    def _taken(self, iterator: Any, start_ns: int, end_ns: int) -> None:
        self.steps.mark(DATA, type(iterator).__name__, start_ns, end_ns)
        if self.steps.light:
            return
        if iterator._num_workers:
            self._iterators.add(iterator)
        number = iterator._num_yielded - 1
        self.steps.batch(end_ns, _pipeline(iterator), number, end_ns - start_ns, _queue(iterator))


def _pipeline(iterator: Any) -> str:
    return type(iterator._dataset).__name__


def _queue(iterator: Any) -> Queue:
    """Batches ready, queue capacity and workers."""
    workers = iterator._num_workers
    if not workers:
        return (None, None, 0)
    try:
        ready = iterator._data_queue.qsize()
    except NotImplementedError:  # macOS
        return (None, iterator._prefetch_factor * workers, workers)
    # batches that arrived out of order wait outside the queue, as (worker, batch)
    ready += sum(1 for info in iterator._task_info.values() if len(info) == 2)
    return (ready, iterator._prefetch_factor * workers, workers)
