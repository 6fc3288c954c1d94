"""Progress and cancellation of questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from stepscope.errors import Cancelled

Progress = Callable[[str, int, int], None]
"""Called with the name of an analysis, the number of finished ranks and the total."""


class Cancellation:
    """Stops the questions of a `watched` block, from any thread: before the next rank or the next analysis."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Stop as soon as possible."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()


@dataclass(frozen=True)
class _Watch:
    progress: Progress | None = None
    cancellation: Cancellation | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)


_watch: ContextVar[_Watch] = ContextVar("stepscope_watch", default=_Watch())  # noqa: B039 - never changed


@contextmanager
def watched(progress: Progress | None = None, cancellation: Cancellation | None = None) -> Iterator[None]:
    """Watch all questions asked in this block, of any run.

    Args:
        progress: Called for each part of a question over ranks, by one thread at a time, possibly not this one.
        cancellation: Makes the block raise `Cancelled` once cancelled. Other threads that wait for the same answers are
            not affected.
    """
    token = _watch.set(_Watch(progress, cancellation))
    try:
        yield
    finally:
        _watch.reset(token)


def check_cancelled() -> None:
    """Raise `Cancelled` if the question in progress was cancelled."""
    cancellation = _watch.get().cancellation
    if cancellation is not None and cancellation.is_cancelled:
        raise Cancelled("the question was cancelled before it was answered. Ask it again to start anew")


def can_be_cancelled() -> bool:
    """Whether the question in progress can be cancelled."""
    return _watch.get().cancellation is not None


def report(question: str, done: int, total: int) -> None:
    """Report how many ranks have finished."""
    watch = _watch.get()
    if watch.progress is not None:
        with watch.lock:
            watch.progress(question, done, total)
