"""What the manager does for escalation (`capture.escalation.Actions`)."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from stepscope.live import places
from stepscope.live.capture.choosing import RankFacts
from stepscope.live.capture.escalation import Escalation
from stepscope.live.capture.limits import LIMITS, EscalationLimits
from stepscope.live.capture.room import MARKER
from stepscope.live.capture.transfer import NotSent
from stepscope.live.control.manager import Manager
from stepscope.live.kinds import Kind
from stepscope.live.messages import Captured, Checked
from stepscope.live.verdicts import Verdict

log = logging.getLogger("stepscope")

A = TypeVar("A", Captured, Checked)

MOST_COPIES = 5
"""Captures of a rank on another host that are kept here."""


class ManagerActions:
    """See `capture.escalation.Actions`."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def facts(self) -> Mapping[int, RankFacts]:
        """See `Actions`."""
        return {
            rank: RankFacts(rank, one.hello.host, one.hello.device, one.hello.framework, one.hello.groups)
            for rank, one in self._manager.ranks.items()
            if one.alive
        }

    def wants_communication(self) -> bool:
        """See `Actions`."""
        return self._manager.wants_communication

    def communication(self) -> tuple[bool, str]:
        """See `Actions`."""
        requested = self._manager.board.requested
        return Kind.COMMUNICATION in requested.switches.on, requested.by

    async def switch_communication(self, *, on: bool, by: str) -> None:
        """See `Actions`."""
        await self._manager.board.request({Kind.COMMUNICATION: on}, by)

    async def capture(self, ranks: Sequence[int], steps: int, timeout_s: float) -> list[Captured]:
        """See `Actions`."""
        name = await self._manager.capture(list(ranks), steps)
        return await self._answers(name, timeout_s, Captured)

    async def dump(self, ranks: Sequence[int], timeout_s: float) -> list[Captured]:
        """See `Actions`."""
        name = await self._manager.dump(list(ranks))
        return await self._answers(name, timeout_s, Captured)

    async def stacks(self, ranks: Sequence[int], timeout_s: float) -> Mapping[int, tuple[str, str]]:
        """See `Actions`."""
        return await self._manager.stacks(list(ranks), timeout_s)

    async def check(self, ranks: Sequence[int], kinds: Sequence[str], timeout_s: float) -> list[Checked]:
        """See `Actions`."""
        name = await self._manager.check(list(ranks), list(kinds))
        return await self._answers(name, timeout_s, Checked)

    async def _answers(self, name: str, timeout_s: float, kind: type[A]) -> list[A]:
        request = await self._manager.results(name, timeout_s)
        return [one for one in request.answers.values() if isinstance(one, kind)]

    def publish(self, verdict: Verdict) -> None:
        """See `Actions`."""
        self._manager.explain(verdict)

    async def read(self, rank: int, directory: str) -> str:
        """See `Actions`. What is on another host is copied here first; its id makes the directory unique."""
        if (Path(directory) / MARKER).is_file():
            return directory
        capture = places.safe_name(Path(directory).name)  # not `..`, whatever the rank says
        target = places.state_directory() / places.safe_name(self._manager.job) / "captures" / f"rank-{rank}" / capture
        try:
            await self._manager.fetch(rank, capture, target)
        except NotSent as error:
            log.warning("the capture of rank %d stays on its host: %s", rank, error)
            return ""
        _keep_last(target)
        return str(target)


def _keep_last(kept: Path) -> None:
    """Delete the oldest copies of captures of a rank."""
    there = sorted(kept.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns)
    for old in there[:-MOST_COPIES]:
        if old != kept:
            shutil.rmtree(old, ignore_errors=True)


def escalate(manager: Manager, limits: EscalationLimits = LIMITS) -> Callable[[], None]:
    """Let verdicts of a manager lead to captures; call the result to end it. Needs a running event loop."""
    escalation = Escalation(ManagerActions(manager), limits)
    tasks: set[asyncio.Task[None]] = set()

    def begin(work: asyncio.Task[None]) -> None:
        tasks.add(work)
        work.add_done_callback(tasks.discard)

    def heard(event: object) -> None:
        if isinstance(event, Verdict):
            begin(asyncio.create_task(escalation.on_verdict(event)))

    def end() -> None:
        manager.unlisten(heard)
        manager.amend = None
        for task in list(tasks):
            task.cancel()

    manager.amend = escalation.amended
    manager.listen(heard)
    begin(asyncio.create_task(escalation.run()))
    log.info("ranks that are slow or hang will be profiled without being asked (--no-escalate turns that off)")
    return end
