"""What the manager does for escalation (`capture.escalation.Actions`)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stepscope.live.capture.choosing import RankFacts
from stepscope.live.capture.escalation import Escalation
from stepscope.live.capture.limits import LIMITS, EscalationLimits
from stepscope.live.control.manager import Manager
from stepscope.live.kinds import Kind
from stepscope.live.messages import Captured, Checked
from stepscope.live.verdicts import Verdict

log = logging.getLogger("stepscope")


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
        request = await self._manager.results(name, timeout_s)
        return [one for one in request.answers.values() if isinstance(one, Captured)]

    async def dump(self, ranks: Sequence[int], timeout_s: float) -> list[Captured]:
        """See `Actions`."""
        name = await self._manager.dump(list(ranks))
        request = await self._manager.results(name, timeout_s)
        return [one for one in request.answers.values() if isinstance(one, Captured)]

    async def stacks(self, ranks: Sequence[int], timeout_s: float) -> Mapping[int, tuple[str, str]]:
        """See `Actions`."""
        return await self._manager.stacks(list(ranks), timeout_s)

    async def check(self, ranks: Sequence[int], kinds: Sequence[str], timeout_s: float) -> list[Checked]:
        """See `Actions`."""
        name = await self._manager.check(list(ranks), list(kinds))
        request = await self._manager.results(name, timeout_s)
        return [one for one in request.answers.values() if isinstance(one, Checked)]

    def publish(self, verdict: Verdict) -> None:
        """See `Actions`."""
        self._manager.explain(verdict)

    def reads(self, host: str, directory: str) -> str:
        """See `Actions`. A directory of another host is only taken if it is shared, so that it exists here as well."""
        del host
        try:
            return directory if Path(directory).is_dir() and any(Path(directory).iterdir()) else ""
        except OSError:
            return ""


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
    log.info("verdicts lead to captures, on host %s", socket.gethostname())
    return end
