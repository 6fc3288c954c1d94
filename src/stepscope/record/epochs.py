"""Epochs of a plain training loop: passes over the training data set."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from weakref import ref

from stepscope.record.steps import StepTracker


class Epochs:
    """Counts passes over the data set of the first step; other loaders, e.g. for validation, do not count.

    The first epoch is recognized only when its first step ends. Epochs that a trainer reports are left to it.
    """

    def __init__(self, steps: StepTracker) -> None:
        self._steps = steps
        self._dataset: Callable[[], Any] | None = None
        self._latest: tuple[Callable[[], Any], int] | None = None
        self._number = 0

    def begins(self, dataset: Any) -> None:
        """A loader is about to return the first batch of a pass over `dataset`."""
        now_ns = perf_counter_ns()
        if self._dataset is None:
            self._latest = (_weakly(dataset), now_ns)
        elif self._dataset() is dataset:
            self._end()
            self._begin(now_ns)

    def ends(self, dataset: Any) -> None:
        """A loader has no more batches of this pass over `dataset`."""
        if self._dataset is not None and self._dataset() is dataset:
            self._end()

    def step_ended(self) -> None:
        """The data set loaded last before the end of the first step is the training data set."""
        if self._dataset is None and self._latest is not None:
            self._dataset, began_ns = self._latest
            self._begin(began_ns)

    def _begin(self, now_ns: int) -> None:
        self._number += 1
        if not self._steps.epochs_reported:
            self._steps.epoch_began(self._number, now_ns)

    def _end(self) -> None:
        if not self._steps.epochs_reported:
            self._steps.epoch_ended(self._number)


def _weakly(dataset: Any) -> Callable[[], Any]:
    try:
        return ref(dataset)
    except TypeError:  # a plain list
        return lambda: dataset
