"""Tasks in threads of this process: the caller's own, and others if there are several tasks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Generic, TypeVar

from stepscope.run.engine.base import Task
from stepscope.run.parts import PartAnswer
from stepscope.run.watching import check_cancelled

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 4
"""Polars itself uses all cores for a query; more threads hardly save time but hold the rows of more ranks."""


class Threads:
    """Runs tasks in this process.

    Args:
        count: Number of threads. Default: one per core, up to `MOST_THREADS`.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or min(MOST_THREADS, os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def map(self, tasks: Sequence[Task], done: Callable[[Task], None]) -> list[PartAnswer]:
        """See `Engine`."""

        def carry_out(task: Task) -> PartAnswer:
            result = task.here()
            done(task)
            return result

        return self.each(carry_out, tasks)

    def each(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """A function's results for some items, in order, computed by this thread and others.

        This thread takes items itself until none is left, so that it waits only for items in progress: nested calls
        cannot block each other, however few threads there are.
        """
        work = _Work(function, items)
        helpers: list[Future[None]] = []
        for _ in range(min(self.count, len(items)) - 1):
            helpers.append(self._executor().submit(copy_context().run, work.help))
        work.help()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        return work.results()

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="stepscope")
            return self._pool


class _Work(Generic[T, R]):
    """Items to process, taken in order by any free thread."""

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items
        self._next = 0
        self._results: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()

    def help(self) -> None:
        """Take items until none is left or one has failed."""
        while (index := self._take()) is not None:
            try:
                check_cancelled()
                self._results[index] = self._function(self._items[index])
            except BaseException as error:  # raised by `results`, in the calling thread
                self._errors[index] = error

    def results(self) -> list[R]:
        """The results of all items once no thread works on them, or the first error."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[index] for index in range(len(self._items))]

    def _take(self) -> int | None:
        with self._lock:
            if self._errors or self._next == len(self._items):
                return None
            self._next += 1
            return self._next - 1
