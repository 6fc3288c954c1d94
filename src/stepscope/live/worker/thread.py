"""The one thread of a live worker: writes records, sends digests, follows switches."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import msgspec

from stepscope.live import places
from stepscope.live.messages import (
    MOST_TEXT,
    Applied,
    Apply,
    Capture,
    Check,
    Digest,
    Digests,
    Dump,
    Hello,
    Inside,
    Message,
    Pulse,
    Refused,
    ToWorker,
)
from stepscope.live.store import RecordStore
from stepscope.live.switches import InvalidSwitch, Switches
from stepscope.live.switching.mounted import MountedSwitches
from stepscope.live.worker.device_times import allow_queries_during_captures, device_times
from stepscope.live.worker.digesting import Digester, described
from stepscope.live.worker.facts import Facts
from stepscope.live.worker.link import Link
from stepscope.live.worker.on_times import marks_of
from stepscope.live.worker.tracker import LiveTracker
from stepscope.live.worker.writing import REST_S, Writing
from stepscope.record.backend import Backend
from stepscope.record.process_facts import own_thread
from stepscope.recording_format.marks import COLLECTIVE

log = logging.getLogger("stepscope")

MOST_DIGESTS = 2000
"""Digests kept while there is no link; older ones are counted as lost."""
_DIGESTS_AT_ONCE = 50


@dataclass(frozen=True)
class Pace:
    """How often the thread does what, in seconds.

    Args:
        drain_s: Ranges become records and digests.
        flush_s: Records are written to disk; with `drain_s`, they are there within 5 s.
        pulse_s: The proxy learns that the worker is alive; also how often the device is looked for.
        look_s: The mounted file with the switches is read.
        age_s: Old records are deleted.
        end_s: How long the end of the process may wait for the thread.
    """

    drain_s: float = 0.5
    flush_s: float = 4.0
    pulse_s: float = 1.0
    look_s: float = 0.5
    age_s: float = 60.0
    end_s: float = 5.0


class LiveThread:
    """Runs from `start` to `stop`. `facts` and the switches of the tracker are set before `start`.

    Args:
        tracker: Receives the ranges.
        backend: Of the framework.
        switches: The initial ones.
        limit_mb: Cap of all records, in MiB.
        pace: How often it does what.
    """

    def __init__(
        self, tracker: LiveTracker, backend: Backend, switches: Switches, limit_mb: int, pace: Pace | None = None
    ) -> None:
        self.facts = Facts()
        """Replaced as a whole; `news` is then set."""
        self.news = False
        self._known = self.facts
        self.switches = switches
        self.revision = 0
        self.store: RecordStore | None = None
        self._tracker = tracker
        self._backend = backend
        self._limit_mb = limit_mb
        self._pace = pace or Pace()
        self._link = Link(places.socket_path())
        file = places.switch_file()
        self._mounted = None if file is None else MountedSwitches(file)
        self._digester = Digester(0)
        self._writing = Writing(tracker, self._digester, self._rest)
        self._outbox: deque[Message] = deque()
        self._waiting: deque[Digest] = deque()
        self._lost = 0
        self._wake_reads, self._wake_writes = os.pipe()
        os.set_blocking(self._wake_reads, False)
        os.set_blocking(self._wake_writes, False)
        self._ending = False
        self._looks_for_device = True
        self._due: dict[str, float] = {}
        self._thread = own_thread(self._run, "stepscope-live")

    @property
    def ranges(self) -> int:
        """Ranges recorded so far."""
        return self._writing.ranges

    @property
    def directory(self) -> Path:
        """Where the records of this rank are."""
        return places.base_directory() / self.facts.job / str(self.facts.rank)

    @property
    def refused(self) -> str:
        """Why the proxy has refused this worker the last time; empty if it has not."""
        return self._link.refused

    @property
    def is_linked(self) -> bool:
        """Whether there is a connection to the proxy."""
        return self._link.is_up

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> bool:
        """Write and send everything, and end the thread; waits for it at most for `Pace.end_s`.

        Returns:
            Whether the thread has ended.
        """
        self._ending = True
        self._wake()
        self._thread.join(self._pace.end_s)
        over = not self._thread.is_alive()
        if over:
            self._close()
        return over

    def forget(self) -> None:
        """In a forked child: close the copies of what the thread of the parent uses."""
        self._link.close()
        self._close()

    def _close(self) -> None:
        """Close what is open; messages sent later wake nobody."""
        descriptors = self._wake_writes, self._wake_reads
        self._wake_writes = self._wake_reads = -1
        for descriptor in descriptors:
            with suppress(OSError):
                os.close(descriptor)
        if self.store is not None:
            self.store.close()

    def send(self, message: Message) -> None:
        """Send a message soon. May be called from any thread."""
        self._outbox.append(message)
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            os.write(self._wake_writes, b"1")

    def _run(self) -> None:
        try:
            self._identify()
            while not self._ending:
                self._turn()
            self._finish()
        except Exception as error:
            self._tracker.switch(frozenset())
            log.warning("live: tracing has stopped; training continues", exc_info=error)
        finally:
            self._link.close()

    def _turn(self) -> None:
        if self._link.connect():
            self._register()
        if self._mounted is not None and self._is_due("look", self._pace.look_s):
            self._look(self._mounted)
        if self.news:
            self.news = False
            self._identify()
            self._register()
        if self._is_due("pulse", self._pace.pulse_s):
            self._find_device()
            self._pulse()
        self._writing.drain()
        self._rest()
        self._send_digests(self._rest)
        while self._outbox:
            self._link.send(self._outbox.popleft())
        if self.store is not None:
            if self._writing.is_full or self._is_due("flush", self._pace.flush_s):
                self._writing.flush(self.store)
            if self._is_due("age", self._pace.age_s):
                self.store.age()
        self._attend(self._pause_s())

    def _pause_s(self) -> float:
        """How long nothing is to be done; each time that the thread wakes up costs some 0.1 ms."""
        if self._tracker.active or self._tracker.queue:
            return self._pace.drain_s
        return self._pace.pulse_s if self._mounted is None else self._pace.look_s

    def _is_due(self, what: str, every_s: float) -> bool:
        now_s = time.monotonic()
        if now_s < self._due.get(what, 0.0):
            return False
        self._due[what] = now_s + every_s
        return True

    def _finish(self) -> None:
        """The process ends, or the worker is stopped."""
        self._writing.drain(at_once=True)
        self._send_digests(lambda: None)
        while self._outbox:
            self._link.send(self._outbox.popleft())
        if self.store is not None:
            self._writing.flush(self.store, at_once=True)

    def _rest(self) -> None:
        """Between two pieces of work: let training run, and follow a switch if there is one."""
        self._attend(REST_S)

    def _attend(self, timeout_s: float) -> None:
        for message in self._link.attend(timeout_s, self._wake_reads):
            self._follow(message)

    def _identify(self) -> None:
        """The rank or the groups are known now, or others. Messages hold the rank as it was registered last."""
        facts = self._known = self.facts
        if facts.rank != self._digester.rank:
            self._digester.rank = facts.rank
            unsent = [*self._waiting, *self._writing.digests]
            self._waiting = deque(msgspec.structs.replace(digest, rank=facts.rank) for digest in unsent)
            self._writing.digests.clear()
        self._digester.device_groups = frozenset(group.key for group in facts.groups) if facts.launches else frozenset()
        if self.store is None or self.store.directory != self.directory:
            if self.store is not None:
                self._writing.flush(self.store)
            self.store = RecordStore(places.base_directory(), facts.job, facts.rank, limit_mb=self._limit_mb)
        self.store.write_worker(self._hello())
        if facts.groups:
            self.store.write_groups(facts.groups, facts.rank)

    def _hello(self) -> Hello:
        return self._known.hello(self.revision, self.switches.as_names(), str(self.directory))

    def _register(self) -> None:
        self._link.send(self._hello())

    def _look(self, mounted: MountedSwitches) -> None:
        """Follow the mounted file as long as there is no proxy; with one, the manager follows it."""
        changes = mounted.look()
        if changes and not self._link.is_up:
            self._switch(self.switches.with_changes(changes))
            self.revision = 0  # no longer the state of a manager, which is followed anew when it comes back

    def _switch(self, switches: Switches) -> None:
        if switches != self.switches:
            self._tracker.switch(marks_of(switches.on))
            log.info("live: recording %s", ", ".join(switches.as_names()) or "nothing")
        self.switches = switches

    def _follow(self, message: ToWorker) -> None:
        if isinstance(message, Apply):
            self._apply(message)
        elif isinstance(message, Refused):
            if message.reason != self._link.refused:
                log.warning("live: the proxy refuses this worker: %s", message.reason)
            self._link.refused = message.reason
        elif isinstance(message, (Capture, Check, Dump)):
            from stepscope.live.capture import in_worker  # noqa: PLC0415 - only when something is captured

            rank, room = self._digester.rank, self.directory
            in_worker.begin(message, self._tracker, self.send, backend=self._backend, directory=room, rank=rank)

    def _apply(self, message: Apply) -> None:
        error = ""
        if message.revision > self.revision:
            try:
                self._switch(Switches.of_names(message.switches))
                self.revision = message.revision
            except InvalidSwitch as problem:
                error = str(problem)[:MOST_TEXT]
        revision = message.revision if error else self.revision
        self._link.send(Applied(self._digester.rank, revision, self.switches.as_names(), time.time_ns(), error))

    def _find_device(self) -> None:
        """Time ranges on the device as soon as training uses it."""
        if not self._looks_for_device:
            return
        try:
            module = self._backend.device_module()
            if module is None:
                self._looks_for_device = False
                return
            found = device_times(module)
            if found is not None:
                self._looks_for_device = False
                if module.__name__ == "torch.cuda":
                    allow_queries_during_captures()
                self._tracker.time_device(found)
        except Exception as error:
            self._looks_for_device = False
            log.warning("live: no times on the device (%s)", error)

    def _pulse(self) -> None:
        if not self._link.is_up:
            return
        now_ns = perf_counter_ns()
        inside = self._inside(now_ns)
        idle_ns = min([now_ns - self._last_ns(), *(one.for_ns for one in inside)])
        problem = self.store.problem if self.store is not None else ""
        dropped = self._tracker.dropped + (self.store.dropped if self.store is not None else 0)
        self._link.send(
            Pulse(
                self._digester.rank, self._tracker.number, idle_ns, inside, self.revision, dropped, problem[:MOST_TEXT]
            )
        )

    def _last_ns(self) -> int:
        """When something happened last, as far as it was recorded."""
        queue = self._tracker.queue
        try:
            return max(self._tracker.last_ns, queue[-1][3])
        except IndexError:
            return max(self._tracker.last_ns, self._writing.last_ns)

    def _inside(self, now_ns: int) -> list[Inside]:
        found = []
        try:
            for call in self._backend.in_progress():
                known = described(call.detail) if call.kind == COLLECTIVE else None
                group = (known.group or "") if known is not None else ""
                before = self._digester.ended.get(group, 0) if known is not None else None
                found.append(Inside(call.kind, now_ns - call.start_ns, call.name[:MOST_TEXT], group, before))
        except Exception as error:  # e.g. a tensor that is freed meanwhile
            log.debug("live: what the threads are in is unknown", exc_info=error)
        return found

    def _send_digests(self, rest: Callable[[], None]) -> None:
        self._waiting.extend(self._writing.digests)
        self._writing.digests.clear()
        while len(self._waiting) > MOST_DIGESTS:
            self._waiting.popleft()
            self._lost += 1
        while self._waiting and self._link.is_up:
            several = [self._waiting.popleft() for _ in range(min(len(self._waiting), _DIGESTS_AT_ONCE))]
            if self._link.send(Digests(several, self._lost)):
                self._lost = 0
            else:
                self._lost += len(several)
            rest()
