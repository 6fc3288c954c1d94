"""A live worker: hooks, tracker and thread of one training process, from start to stop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from stepscope.errors import StepscopeError
from stepscope.live.switches import Switches
from stepscope.live.worker.on_times import marks_of
from stepscope.live.worker.signs import ended, started
from stepscope.live.worker.thread import LiveThread, Pace
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.backend import Backend
from stepscope.record.garbage import GarbageMarks
from stepscope.record.options import resolve

log = logging.getLogger("stepscope")


class Worker:
    """Installs the hooks when made.

    Args:
        backend: Of the framework.
        switches: Kinds that are on until somebody switches.
        limit_mb: Cap of all records, in MiB.
        rank: If the script has given it.
        waits: Start no thread and write nothing before the first sign of training in this process.
        joins: Training is under way: the step in which it is now is not whole.
        begins: Called when the worker begins to record.
    """

    def __init__(
        self,
        backend: Backend,
        switches: Switches,
        limit_mb: int,
        rank: int | None,
        *,
        waits: bool,
        joins: bool = False,
        begins: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self.process = os.getpid()
        self.backend = backend
        self.tracker = LiveTracker(self._identity_changed, joins=joins)
        self.thread: LiveThread | None = None
        """None before the first sign of training, and after the end."""
        self._switches = switches
        self._limit_mb = limit_mb
        self._rank = rank
        self._pace = pace
        self._begins = begins
        self._garbage = GarbageMarks(self.tracker)
        backend.attach(self.tracker, resolve({"op_time": False}, backend.target, lenient=True))
        if waits:
            self.tracker.on_activity = self._wake
            return
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    @property
    def is_waiting(self) -> bool:
        """Whether there was no sign of training yet."""
        return self.tracker.on_activity is not None

    def begin(self, rank: int | None, limit_mb: int) -> None:
        """The script starts the worker that the environment has put in wait."""
        if rank is not None:
            self._rank = rank
        self._limit_mb = limit_mb
        if self.is_waiting:
            self.tracker.on_activity = None
            self._begin()
        else:
            self._identity_changed()

    def stop(self) -> None:
        """Record nothing more, remove the hooks, and write and send everything."""
        thread, self.thread = self.thread, None
        self._garbage.end()
        self.tracker.on_activity = None
        self.tracker.switch(frozenset())
        self.tracker.pause()
        try:
            self.backend.detach()
        except Exception as error:
            log.warning("live: the hooks could not be removed", exc_info=error)
        if thread is not None:
            if thread.stop():
                self.tracker.forget()  # closes what it reads
            ended(thread.facts.rank, self.tracker.number, thread.ranges, thread.store)

    def in_child(self) -> None:
        """In a forked child: a worker that waits for training does so here as well, one that records stays with the
        parent."""
        if self.is_waiting:
            self.process = os.getpid()
            return
        self._garbage.forget()
        self.tracker.forget()
        thread, self.thread = self.thread, None
        if thread is not None:
            thread.forget()

    def _wake(self) -> None:
        """The first sign of training, on its thread."""
        try:
            if self.backend.in_data_worker():
                self.tracker.forget()
                return
            self._begin()
        except StepscopeError as error:
            self.tracker.forget()
            log.warning("live: tracing could not start: %s. Training continues", error)
        except Exception as error:
            self.tracker.forget()
            log.warning("live: tracing could not start; training continues", exc_info=error)

    def _begin(self) -> None:
        thread = LiveThread(self.tracker, self.backend, self._switches, self._limit_mb, self._pace)
        thread.facts = thread.facts.look(self.backend, self._rank)
        directory = thread.directory
        self.tracker.switch(marks_of(self._switches.on), self.tracker.first_ns)
        self._begins()
        self._garbage.begin()
        self.thread = thread
        thread.start()
        started(thread.facts.rank, directory)

    def _identity_changed(self) -> None:
        """The process group was created or is about to be destroyed."""
        thread = self.thread
        if thread is None:
            return
        try:
            facts = thread.facts.look(self.backend, self._rank)
        except Exception as error:
            log.debug("live: the process group could not be inspected", exc_info=error)
            return
        if facts != thread.facts:
            thread.facts, thread.news = facts, True
