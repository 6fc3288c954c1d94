"""Waits of the training loop for batches, and its passes over the data: a hook on MindData's iterators."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from stepscope.record.epochs import Epochs
from stepscope.record.hooks import Hooks
from stepscope.record.mindspore.minddata import MindData
from stepscope.record.mindspore.phases import Inside
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import DATA


@dataclass
class _Pipeline:
    """One data set that is iterated over."""

    name: str
    """Class of its last operation, with a number if there are several."""
    workers: int | None
    batches: int = 0


class Loader:
    """Marks and counts batches, and reports epochs.

    Args:
        steps: Receives them.
        data: Notified of each iterator that has no more batches for now.
        inside: Receives waits in progress.
        marks: Whether to record waits and batches; epochs are always reported.
    """

    def __init__(self, steps: StepTracker, data: MindData | None, inside: Inside, *, marks: bool) -> None:
        self._steps = steps
        self._data = data
        self._inside = inside
        self._marks = marks
        self._of_data_set: weakref.WeakKeyDictionary[Any, _Pipeline] = weakref.WeakKeyDictionary()
        self._names: dict[str, int] = {}
        self.epochs = Epochs(steps)
        self._in_pass: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self, hooks: Hooks) -> None:
        """Put the hook in place."""
        from mindspore.dataset.engine.iterators import Iterator

        hooks.around(Iterator, "__next__", self._enter, self._leave)

    def _enter(self, args: tuple[Any, ...], _: dict[str, Any]) -> tuple[Any, int]:
        iterator = args[0]
        if iterator not in self._in_pass:  # one iterator may make several passes
            self._in_pass.add(iterator)
            self.epochs.begins(_data_set(iterator))
        start_ns = perf_counter_ns()
        try:  # a signal handler of the user may raise at any time
            if self._marks and DATA in self._steps.wanted:
                self._inside[DATA, get_ident()] = start_ns, None
            self._steps.activity(start_ns, DATA)
        except BaseException:
            self._inside.pop((DATA, get_ident()), None)
            raise
        return iterator, start_ns

    def _leave(self, token: tuple[Any, int], returned: bool) -> None:
        iterator, start_ns = token
        self._inside.pop((DATA, get_ident()), None)
        if not returned:
            self._in_pass.discard(iterator)
            self.epochs.ends(_data_set(iterator))
            if self._data is not None:
                self._data.epoch_over(iterator)
            return
        if not self._marks:
            return
        now_ns = perf_counter_ns()
        self._steps.mark(DATA, type(iterator).__name__, start_ns, now_ns)
        if self._steps.light:
            return
        pipeline = self._find(_data_set(iterator))
        queue = (None, None, pipeline.workers)
        self._steps.batch(now_ns, pipeline.name, pipeline.batches, now_ns - start_ns, queue)
        pipeline.batches += 1

    def _find(self, data_set: Any) -> _Pipeline:
        """The pipeline of a data set, shared by its iterators: each epoch may have a new one."""
        pipeline = self._of_data_set.get(data_set)
        if pipeline is None:
            name = type(data_set).__name__
            number = self._names[name] = self._names.get(name, 0) + 1
            pipeline = _Pipeline(name if number == 1 else f"{name}-{number}", _workers(data_set))
            self._of_data_set[data_set] = pipeline
        return pipeline


def _data_set(iterator: Any) -> Any:
    """The data set of an iterator; each pass may have a new iterator."""
    return getattr(iterator, "_Iterator__ori_dataset", iterator)


def _workers(data_set: Any) -> int | None:
    """Maximum of parallel workers of the operations of a data set."""
    own = getattr(data_set, "num_parallel_workers", None)
    found = [_workers(child) for child in getattr(data_set, "children", None) or ()]
    return max((count for count in (own, *found) if isinstance(count, int)), default=None)
