"""Epochs of a plain training loop: passes over the data set that is loaded first."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from weakref import ref

from stepscope.record.steps import Steps


class Epochs:
    """Counts passes over the first data set; other loaders, as those that validate, are none.

    Args:
        steps: Told where one begins and ends.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._dataset: Callable[[], Any] | None = None
        self._number = 0
        self._began_ns: int | None = None

    def begins(self, iterator: Any) -> None:
        """A loader's iterator is about to give the first batch of a pass."""
        if self._dataset is None:
            self._dataset = _weakly(iterator._dataset)
        if self._dataset() is not iterator._dataset:
            return
        self._end()
        self._number += 1
        self._began_ns = perf_counter_ns()
        self._steps.epoch_began(self._number)

    def ends(self, iterator: Any) -> None:
        """A loader's iterator has no more batches."""
        if self._dataset is not None and self._dataset() is iterator._dataset:
            self._end()

    def _end(self) -> None:
        began_ns, self._began_ns = self._began_ns, None
        if began_ns is not None:
            self._steps.epoch_ended(self._number, began_ns, perf_counter_ns())


def _weakly(dataset: Any) -> Callable[[], Any]:
    try:
        return ref(dataset)
    except TypeError:  # a plain list
        return lambda: dataset
