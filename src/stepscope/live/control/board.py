"""The one state of a job's switches, whoever changes it: validated, kept on disk, and acknowledged rank by rank.

Used within one event loop; nothing here blocks longer than writing a small file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.live.kinds import Kind
from stepscope.live.messages import MOST_REVISION
from stepscope.live.switches import DEFAULT, InvalidSwitch, Switches
from stepscope.record.files import make_private, replace_json

log = logging.getLogger("stepscope")


class CannotKeep(StepscopeError):
    """The state could not be written to disk; it is as before."""


@dataclass(frozen=True)
class Requested:
    """A state that was asked for.

    Args:
        revision: Counts requests; 0 if nobody has switched yet, so that each worker keeps its initial state. Newer
            states have larger revisions, also after the manager was restarted.
        switches: Which kinds are on; at revision 0 those that any of the workers was started with.
        by: Who asked, e.g. `cli`, `file PATH`, `grpc 10.0.0.7`.
        at_ns: When, since the epoch.
    """

    revision: int = 0
    switches: Switches = DEFAULT
    by: str = ""
    at_ns: int = 0


@dataclass
class Acknowledgement:
    """What a rank has last said of the switches."""

    revision: int
    switches: Switches
    at_ns: int
    """When its answer arrived, on the clock of the manager."""
    error: str = ""


@dataclass
class Board:
    """The state of the switches of one job.

    Args:
        file: Where the state is kept; None to keep it in memory only. Created with its directory.
    """

    file: Path | None = None
    requested: Requested = Requested()
    acknowledged: dict[int, Acknowledgement] = field(default_factory=dict)
    """By rank; of ranks that take part now."""
    changed: Callable[[Requested], None] | None = None
    """Called after each change, to pass it on."""

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._asked: dict[Kind, bool] = {}  # all changes since this board exists
        if self.file is not None:
            self.requested = _read(self.file) or self.requested

    async def keep_in(self, file: Path) -> None:
        """Keep the state in a file from now on. What it holds is continued, with what was requested here since.

        Raises:
            CannotKeep: If it cannot be written.
        """
        kept, self.file = _read(file), file
        if kept is not None:
            self._continue(kept)
        elif self.requested.revision:
            self._keep(self.requested)

    async def request(self, changes: Mapping[Kind, bool], by: str) -> Requested:
        """Change some switches. A state equal to the present one keeps its revision, unless nobody has switched yet.

        Who asks for it again owns it from now on, so that nobody else undoes it (escalation switches communication off
        only as long as it is the one who has asked for it).

        Returns:
            The state from now on. It is on disk, so it survives the manager.

        Raises:
            CannotKeep: If it cannot be written; nothing has changed then.
        """
        switches = self.requested.switches.with_changes(changes)
        if switches != self.requested.switches or not self.requested.revision:
            asked = Requested(self.requested.revision + 1, switches, by, time.time_ns())
            self._keep(asked)
            self._adopt(asked)
        elif by != self.requested.by:
            asked = replace(self.requested, by=by, at_ns=time.time_ns())
            self._keep(asked)
            self.requested = asked
            log.info("the switches are as asked for again (%s)", by)
        self._asked.update(changes)
        return self.requested

    async def learn(self, revision: int, names: list[str], by: str) -> None:
        """A proxy or worker knows a newer state, e.g. since this manager lost its disk: adopt it.

        What was requested here since the start of this manager is newer still, and stays in force.
        """
        with suppress(InvalidSwitch):
            self._continue(Requested(revision, Switches.of_names(names), by, time.time_ns()))

    def _continue(self, known: Requested) -> None:
        """Go on from a state of before, unless the present one is as new, or it cannot be one."""
        if not self.requested.revision < known.revision <= MOST_REVISION:
            return
        switches = known.switches.with_changes(self._asked)
        if switches != known.switches:
            known = Requested(known.revision + 1, switches, self.requested.by, self.requested.at_ns)
        try:
            self._keep(known)
        except CannotKeep as error:  # it is in effect all the same
            log.warning("%s", error)
        self._adopt(known)

    async def acknowledge(self, rank: int, revision: int, names: list[str], error: str = "") -> None:
        """A rank has applied a state, or could not."""
        known = self.acknowledged.get(rank)
        if known is not None and known.revision > revision and not error:
            return
        with suppress(InvalidSwitch):
            self.acknowledged[rank] = Acknowledgement(revision, Switches.of_names(names), time.time_ns(), error)
            if not self.requested.revision:
                self._begin_with_ranks()
            self._tell()

    def _begin_with_ranks(self) -> None:
        """As long as nobody has switched, the state is what workers were started with: what any of them records is on,
        so that a request for another switch turns nothing off."""
        states = [said.switches.on for said in self.acknowledged.values()]
        self.requested = replace(self.requested, switches=Switches(frozenset[Kind]().union(*states)))

    def left(self, rank: int) -> None:
        """A rank no longer takes part."""
        if self.acknowledged.pop(rank, None) is not None:
            self._tell()

    def pending(self) -> list[int]:
        """Ranks that take part and have not applied the requested state, sorted."""
        return sorted(rank for rank, said in self.acknowledged.items() if self._is_pending(said))

    def _is_pending(self, said: Acknowledgement) -> bool:
        return said.revision < self.requested.revision or bool(said.error)

    async def settled(self, timeout_s: float) -> bool:
        """Wait until all ranks have applied the requested state; return whether they have."""
        try:
            await asyncio.wait_for(self._until(self._is_settled), timeout_s)
        except asyncio.TimeoutError:
            return False
        return True

    async def states(self) -> AsyncIterator[Requested]:
        """The present state, and each new one."""
        shown: Requested | None = None
        while True:
            await self._until(lambda: self.requested != shown)  # noqa: B023 - evaluated before the next round
            shown = self.requested
            yield shown

    def _is_settled(self) -> bool:
        return not any(map(self._is_pending, self.acknowledged.values()))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()

    def _keep(self, requested: Requested) -> None:
        if self.file is not None:
            _write(self.file, requested)

    def _adopt(self, requested: Requested) -> None:
        self.requested = requested
        log.info("switches: %s (%s)", requested.switches.as_guide(), requested.by)
        if self.changed is not None:
            self.changed(requested)
        self._tell()

    def _tell(self) -> None:
        """Wake those who wait: once for all that happens before they run."""
        self._news.set()
        self._news = asyncio.Event()


def _write(file: Path, requested: Requested) -> None:
    content = {
        "revision": requested.revision,
        "switches": requested.switches.as_names(),
        "by": requested.by,
        "at_ns": requested.at_ns,
    }
    try:
        make_private(file.parent)
        replace_json(file, content, durable=True)
    except OSError as error:
        raise CannotKeep(
            f"{file}: the state of the switches cannot be written ({error.strerror or error}); it is unchanged. "
            "Check free disk space and permissions"
        ) from error


def _read(file: Path) -> Requested | None:
    try:
        kept = json.loads(file.read_bytes())
        return Requested(
            int(kept["revision"]), Switches.of_names(kept["switches"]), str(kept["by"]), int(kept["at_ns"])
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidSwitch) as error:
        log.warning("%s: not a state of switches (%s); the state is taken from the workers", file, error)
        return None
