"""The manager follows the ConfigMap with the switches of its job, and writes there what was requested elsewhere."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from stepscope.live.control.board import Board, CannotKeep, Requested
from stepscope.live.control.rates import Once
from stepscope.live.kinds import Kind
from stepscope.live.switches import InvalidSwitch, Switches, parse_guide
from stepscope.live.switching.config_map import Cluster, Seen, changes, listed, name_of, rule, write
from stepscope.live.switching.declared import Declared
from stepscope.live.switching.mounted import LOOK_EVERY_S

log = logging.getLogger("stepscope")

GONE, CONFLICT = 410, 409
DENIED = (401, 403)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Time before the API server is tried again, in seconds: doubled each time, with a random part."""
QUIET_S = 300.0
"""The same problem is reported again after this time at the earliest."""
OWN_VERSIONS = 100
"""How many versions that the manager itself has written are remembered."""


async def follow_config_map(
    board: Board, cluster: Cluster, job: str, *, writes: bool = False, first_wait_s: float = FIRST_WAIT_S
) -> None:
    """Request on the board what the ConfigMap of a job says, each time that it changes. Runs until it is cancelled.

    Args:
        board: Where the state ends.
        cluster: From `config_map.connect`.
        job: Name of the job's object: the ConfigMap is `data-trace-<job>`.
        writes: Whether a state that was requested elsewhere is written into the ConfigMap, which is created if needed.
        first_wait_s: Time before a failed call is tried again.

    Raises:
        KubernetesProblem: If the job has no valid name.
    """
    name, loop = name_of(job), asyncio.get_running_loop()
    follower = _Follower(board, cluster, name, writes, first_wait_s)
    arrived: asyncio.Queue[Seen] = asyncio.Queue()

    def pass_on(seen: Seen) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(arrived.put_nowait, seen)

    watcher = _Watcher(cluster, name, writes, pass_on, first_wait_s)
    threading.Thread(target=watcher.run, name="stepscope-configmap", daemon=True).start()
    writer = asyncio.ensure_future(follower.write_back()) if writes else None
    try:
        while True:
            seen = None
            with suppress(asyncio.TimeoutError):
                seen = await asyncio.wait_for(arrived.get(), LOOK_EVERY_S)
            await follower.look(seen)
    finally:
        watcher.stop()
        if writer is not None:
            writer.cancel()


class _Follower:
    """What the board and the ConfigMap say, one change after the other."""

    def __init__(self, board: Board, cluster: Cluster, name: str, writes: bool, wait_s: float) -> None:
        self._board, self._cluster, self._name, self._wait_s = board, cluster, name, wait_s
        self._declared = Declared(board, f"ConfigMap {cluster.namespace}/{name}")
        self._reports = _Reports(f"ConfigMap {cluster.namespace}/{name}", rule(cluster, name, writes))
        self._writes = writes
        self._turn = asyncio.Lock()
        self._known: Seen | None = None
        self._declares: dict[Kind, bool] | None = None
        self._own: list[str] = []

    async def look(self, seen: Seen | None) -> None:
        """Act on what the ConfigMap says now; None if it says the same as before."""
        async with self._turn:  # a change is acted upon before anything else is written over it
            if seen is not None and not (seen.version and seen.version in self._own):
                self._known = seen
                self._declares = self._changes(seen)
            if self._declares is not None:
                try:
                    await self._declared.declare(self._declares)
                except CannotKeep as error:
                    self._reports.problem(str(error))

    def _changes(self, seen: Seen) -> dict[Kind, bool] | None:
        if self._writes and not seen.version:
            return None  # it is created with the next change
        problem, changes = seen.problem, None
        if not problem and seen.text is not None:
            try:
                changes = parse_guide(seen.text)
            except InvalidSwitch as error:
                problem = str(error)
        if problem:
            self._reports.problem(f"{problem}. The switches stay as they are")
        elif seen.label is None:
            self._reports.problem('it lacks the label reset: "true", without which MindCluster does not pass it on')
        return changes

    async def write_back(self) -> None:
        """Write each state that was requested elsewhere. Runs until it is cancelled."""
        async for state in self._board.states():
            wait_s = self._wait_s
            while state is self._board.requested and not await self._written(state):
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def _written(self, state: Requested) -> bool:
        """Whether nothing is left to be written."""
        async with self._turn:
            if not state.revision or state.by == self._declared.source:
                return True
            if self._known is None or self._known.is_aside:  # what it says comes first
                return False
            if _says(self._known, state.switches):
                return True
            try:
                found = await asyncio.to_thread(write, self._cluster, self._name, state.switches, self._known)
            except Exception as error:  # whatever it is, the manager goes on
                if getattr(error, "status", None) != CONFLICT:
                    self._reports.failure("written", error)
                return False
            if not _says(found, state.switches):
                return False  # somebody has edited it, which arrives here in a moment
            self._known = found
            self._own = [*self._own[-OWN_VERSIONS:], found.version]
            self._declares = {kind: kind in state.switches.on for kind in Kind}
            self._declared.remember(self._declares)
            return True


class _Watcher:
    """Watches the ConfigMap in a thread."""

    def __init__(
        self, cluster: Cluster, name: str, writes: bool, pass_on: Callable[[Seen], None], first_wait_s: float
    ) -> None:
        from kubernetes.watch import Watch  # an extra, loaded only where it is used

        self._cluster, self._name, self._pass_on = cluster, name, pass_on
        self._first_wait_s = first_wait_s
        self._watch: Any = Watch()
        self._stopped = threading.Event()
        self._reports = _Reports(f"ConfigMap {cluster.namespace}/{name}", rule(cluster, name, writes))

    def run(self) -> None:
        """Watch until stopped, whatever happens."""
        wait_s, version = self._first_wait_s, ""
        while not self._stopped.is_set():
            try:
                if not version:
                    seen, version = listed(self._cluster, self._name)
                    self._pass_on(seen)
                    self._reports.well()
                for seen in changes(self._cluster, self._name, version, self._watch):
                    self._pass_on(seen)
                version = self._watch.resource_version or ""
                wait_s = self._first_wait_s
            except Exception as error:  # a way to switch must not end without a word
                gone = getattr(error, "status", None) == GONE
                if not gone and not self._stopped.is_set():
                    self._reports.failure("watched", error)
                version = ""
                self._stopped.wait(wait_s * (0.5 + random.random()))
                wait_s = self._first_wait_s if gone else min(wait_s * 2, LONGEST_WAIT_S)

    def stop(self) -> None:
        """End the thread, at once if it can be."""
        self._stopped.set()
        self._watch.stop()


class _Reports:
    """Reports each problem once in a while."""

    def __init__(self, what: str, rule: str) -> None:
        self._what, self._rule = what, rule
        self._once = Once(QUIET_S)
        self._failing = False

    def problem(self, text: str) -> None:
        """Something is wrong."""
        self._failing = True
        if self._once.is_news(text):
            log.warning("%s: %s", self._what, text)

    def failure(self, done: str, error: Exception) -> None:
        """The API server could not be used."""
        status, reason = getattr(error, "status", None), getattr(error, "reason", None)
        if status in DENIED:
            self.problem(f"it may not be {done} ({status} {reason or ''}). {self._rule}")
        else:
            words = f"{status} {reason}" if status else f"{type(error).__name__}: {str(error)[:200]}"
            self.problem(f"it cannot be {done} at the moment ({words}); trying again")

    def well(self) -> None:
        """What was wrong is over."""
        if self._failing:
            log.info("%s: can be read again", self._what)
            self._once, self._failing = Once(QUIET_S), False


def _says(seen: Seen, switches: Switches) -> bool:
    """Whether a ConfigMap has all five switches in this state."""
    try:
        return parse_guide(seen.text or "") == {kind: kind in switches.on for kind in Kind}
    except InvalidSwitch:
        return False
