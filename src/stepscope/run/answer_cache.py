"""Answers in memory: each computed once, by the first thread that asks; the least recently used are dropped first."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import polars as pl

from stepscope.errors import Cancelled, StepscopeError, Unavailable
from stepscope.run.watching import can_be_cancelled, check_cancelled

DEFAULT_MB = 2048
"""Default size of a run's answer cache in MB, chosen by us: far more than the answers of some hundred ranks, and little
compared with the memory needed to read them."""

_ENTRY_BYTES = 1024
"""Approximate overhead of an answer besides its rows."""

_SMALL_SHARE = 0.01
"""Answers of at most this share of the bound are dropped last, chosen by us: they may have taken as long to compute as
large ones, which all parts of one question would otherwise drop again and again."""

_POLL_S = 0.05
"""How often a thread that waits for another thread's answer checks whether its own question was cancelled."""

_LOCK = threading.Lock()
"""One lock for all caches, since a question to one run may ask another run; held only briefly."""


@dataclass(eq=False)
class _Entry:
    """An answer, or the work on it."""

    cache: AnswerCache
    key: Hashable
    parent: _Entry | None
    keeps: bool
    done: threading.Event = field(default_factory=threading.Event)
    abandoned: bool = False
    value: Any = None
    failure: BaseException | None = None
    size: int = 0
    used_s: float = field(default_factory=time.monotonic)
    pins: int = 0
    used: list[_Entry] = field(default_factory=list)
    asks: list[_Entry] = field(default_factory=list)

    def reaches(self, other: _Entry) -> bool:
        """Whether the work on this entry waits, directly or indirectly, for another entry."""
        return self is other or any(asked.reaches(other) for asked in self.asks)

    def result(self) -> Any:
        """The answer, or its error raised; `Unavailable` is raised as a new error each time."""
        if isinstance(self.failure, Unavailable):
            raise self.failure.again()
        if self.failure is not None:
            raise self.failure
        return self.value


_asking: ContextVar[_Entry | None] = ContextVar("stepscope_asking", default=None)
"""The work in progress in this thread; threads that compute parts of it inherit it."""


class AnswerCache:
    """Answers by key, of up to `most_bytes` in all.

    Answers used by a question in progress are kept until it is answered, even beyond the bound.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.owner = object()
        """Equal only for the same cache: what tells its runs from others in a cache that they share."""
        self.used_bytes = 0
        """Size of the kept answers."""
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Any], *, keeps: bool = True) -> Any:
        """The answer of a key, computed if necessary.

        A thread that asks for an answer in progress waits for it and gets the same answer or error. Only answers and
        `Unavailable` reasons are kept.

        Args:
            key: Equal for the same question.
            compute: May ask for other answers.
            keeps: Keep the answers that it uses until it is done. Otherwise each part of the work releases them when
                that part is done, so that memory does not grow with the number of parts.

        Raises:
            StepscopeError: If the answer depends on itself.
        """
        while True:
            check_cancelled()
            entry, is_mine = self._claim(key, keeps)
            try:
                if is_mine:
                    self._compute(entry, compute)
                while not entry.done.wait(_POLL_S if can_be_cancelled() else None):  # another thread computes it
                    check_cancelled()
            finally:
                _leave(entry)
            if not entry.abandoned:
                return entry.result()

    def known(self, key: Hashable) -> Any:
        """The answer of a key if it is known, else None."""
        with _LOCK:
            entry = self._entries.get(key)
            if entry is None or not entry.done.is_set() or entry.failure is not None:
                return None
            self._use(entry)
            _pin(entry, _asking.get())
            return entry.value

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep an answer that was computed elsewhere, unless it is known or in progress."""
        entry = _Entry(self, key, None, keeps=True, value=value, size=_ENTRY_BYTES + size_of(value))
        entry.done.set()
        with _LOCK:
            if self._entries.setdefault(key, entry) is entry:
                self.used_bytes += entry.size
                self._make_room()

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Drop answers, e.g. those that are part of another one."""
        with _LOCK:
            for key in keys:
                entry = self._entries.get(key)
                if entry is not None and entry.done.is_set():
                    self._drop(entry)

    def drop_unused(self, seconds: float) -> None:
        """Drop the answers that were not used for so long."""
        since = time.monotonic() - seconds
        with _LOCK:
            for entry in [one for one in self._entries.values() if one.done.is_set() and not one.pins]:
                if entry.used_s < since:
                    self._drop(entry)

    def _claim(self, key: Hashable, keeps: bool) -> tuple[_Entry, bool]:
        """The entry of a key, and whether the caller must compute it."""
        asker = _asking.get()
        with _LOCK:
            entry = self._entries.get(key)
            is_mine = entry is None
            if entry is None:
                entry = self._entries[key] = _Entry(self, key, asker, keeps)
            elif entry.done.is_set():
                self._use(entry)
            elif asker is not None and entry.reaches(asker):
                raise StepscopeError("a function asks for its own answer. Ask the analyses that it needs instead")
            if asker is not None and not entry.done.is_set():
                asker.asks.append(entry)
            _pin(entry, asker)
            return entry, is_mine

    def _compute(self, entry: _Entry, compute: Callable[[], Any]) -> None:
        token = _asking.set(entry)
        try:
            entry.value = compute()
            entry.size = _ENTRY_BYTES + size_of(entry.value)
        except Unavailable as reason:
            entry.failure = reason.again()
            entry.size = _ENTRY_BYTES + sys.getsizeof(str(reason))
        except BaseException as error:
            entry.failure = error
            # other waiting threads were not interrupted and compute it themselves
            entry.abandoned = isinstance(error, (Cancelled, KeyboardInterrupt, SystemExit, GeneratorExit))
            raise
        finally:
            _asking.reset(token)
            self._finish(entry)

    def _finish(self, entry: _Entry) -> None:
        """Count an answer, release the answers it used unless an outer question continues, and free memory."""
        with _LOCK:
            parent = entry.parent
            released = {self}
            for used in entry.used:
                if parent is not None and parent.keeps and not parent.done.is_set():
                    parent.used.append(used)
                else:
                    used.pins -= 1
                    released.add(used.cache)
            entry.used.clear()
            entry.parent = None
            entry.done.set()
            if entry.failure is None or isinstance(entry.failure, Unavailable):
                self.used_bytes += entry.size
                self._use(entry)
            else:
                del self._entries[entry.key]
            for cache in released:
                cache._make_room()

    def _use(self, entry: _Entry) -> None:
        """Note that an answer is used."""
        entry.used_s = time.monotonic()
        self._entries.move_to_end(entry.key)

    def _make_room(self) -> None:
        excess = self.used_bytes - self.most_bytes
        if excess <= 0:
            return
        least = _SMALL_SHARE * self.most_bytes
        unused = [entry for entry in self._entries.values() if entry.done.is_set() and not entry.pins]
        # What is larger than the bound leaves first: others would have to leave for nothing.
        for entry in sorted(unused, key=lambda one: (one.size <= self.most_bytes) + (one.size <= least)):
            if excess <= 0:
                break
            self._drop(entry)
            excess -= entry.size

    def _drop(self, entry: _Entry) -> None:
        del self._entries[entry.key]
        self.used_bytes -= entry.size


def _pin(entry: _Entry, asker: _Entry | None) -> None:
    """Keep an answer until the question that uses it is answered."""
    if asker is not None:
        entry.pins += 1
        asker.used.append(entry)


def _leave(entry: _Entry) -> None:
    """Note that the work in progress no longer waits for an entry."""
    asker = _asking.get()
    with _LOCK:
        if asker is not None and entry in asker.asks:
            asker.asks.remove(entry)


COLUMN_BYTES = 600
"""What a column takes beside its values: measured as resident memory of thousands of small frames."""


def size_of(value: Any) -> int:
    """Approximate size of an answer in bytes."""
    if isinstance(value, pl.DataFrame):
        return int(value.estimated_size()) + COLUMN_BYTES * value.width
    if isinstance(value, pl.Series):
        return int(value.estimated_size()) + COLUMN_BYTES
    if is_dataclass(value) and not isinstance(value, type) and "__sizeof__" not in vars(type(value)):
        return sum(size_of(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(map(size_of, value)) + sum(map(size_of, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return sys.getsizeof(value) + sum(map(size_of, value))
    return sys.getsizeof(value)
