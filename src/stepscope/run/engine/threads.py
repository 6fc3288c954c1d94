"""Tasks in threads of this process: the caller's own, and others if there are several tasks."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from stepscope.errors import StepscopeError
from stepscope.run.engine.base import PartAnswer, Task
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
        self.count = min(MOST_THREADS, os.cpu_count() or 1) if count is None else count
        if self.count < 1:
            raise StepscopeError(f"{count} workers cannot answer. Give 1 or more, or None for the default")
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
        waiting = deque(enumerate(items))  # threads may take from it without a lock
        results: dict[int, R] = {}
        errors: dict[int, BaseException] = {}

        def take_items() -> None:
            """Take items in order until none is left or one has failed."""
            while not errors:
                try:
                    index, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    check_cancelled()
                    results[index] = function(item)
                except BaseException as error:  # raised below, in the calling thread
                    errors[index] = error

        others = range(min(self.count, len(items)) - 1)
        helpers = [self._executor().submit(copy_context().run, take_items) for _ in others]
        take_items()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        if errors:
            raise errors[min(errors)]
        return [results[index] for index in range(len(items))]

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="stepscope")
            return self._pool
