"""A running job, asked of its manager once for all pages that show it: steps as they come, switches, profiles.

Nobody is asked while no page looks. Steps are remembered as far as a screen shows them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Answers, Switched
    from stepscope.live.show.status import Status

HERE = "here"
"""What stands for the manager of this user on this machine, in place of an address."""

EVERY_S = 1.0
"""Seconds between two questions to the manager, however many pages look."""

KEPT_STEPS = 200
"""Steps of a rank that are remembered."""

KEPT_RANKS = 256
"""Ranks whose steps are remembered; a manager tells those of the ranks that are worth a look."""

SWITCHED_WITHIN_S = 5.0
CAPTURED_WITHIN_S = 120.0
MOST_STEPS = 50
MOST_CAPTURED = 16
"""Ranks that are profiled at once from a page: profiles of all ranks of a large job are never meant."""

INSTALL = "Live tracing needs gRPC. Install it: pip install 'stepscope[live]'"

Measure = Literal["step", "data", "forward"]
MEASURES: tuple[Measure, ...] = ("step", "data", "forward")


class StepTime(NamedTuple):
    """A step of a rank; times in ns, None if they were not recorded."""

    step: int
    step_ns: int
    data_ns: int | None
    forward_ns: int | None

    def of(self, measure: Measure) -> int | None:
        """One of its times."""
        return {"step": self.step_ns, "data": self.data_ns, "forward": self.forward_ns}[measure]


@dataclass
class LiveJob:
    """The job of a manager.

    Args:
        manager: Address of the manager, `HOST` or `HOST:PORT`; `here` for that of this user on this machine.
    """

    manager: str
    status: Status | None = field(default=None, init=False)
    """What it last said; None if it never answered."""
    problem: StepscopeError | None = field(default=None, init=False)
    """Why that is not up to date; None if it is."""
    steps: dict[int, deque[StepTime]] = field(default_factory=dict, init=False)
    """The last steps of ranks that are worth a look, by rank."""
    asked_s: float = field(default=float("-inf"), init=False)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _pids: dict[int, int] = field(default_factory=dict, init=False)

    @property
    def address(self) -> str:
        """The address as the client takes it: empty for this machine."""
        return "" if self.manager == HERE else self.manager

    async def look(self) -> None:
        """Ask how the job is, unless that was asked just now; a manager that is away is a problem that may pass."""
        async with self._asking:
            if time.monotonic() - self.asked_s < EVERY_S * 0.8:
                return
            try:
                found = await self._status()
            except StepscopeError as error:
                self.problem = error
            else:
                self.status, self.problem = found, None
                self._remember(found)
            self.asked_s = time.monotonic()

    async def switch(self, changes: Mapping[str, str], by: str) -> Switched:
        """Change what is recorded, e.g. `{"communication": "on"}`.

        Args:
            by: Who asks, for the log of the manager.

        Raises:
            StepscopeError: If the manager cannot be asked, or refuses.
        """
        connected = _client()
        async with connected(self.address) as client:
            done: Switched = await client.switch(changes, by=by, wait_s=SWITCHED_WITHIN_S)
        self.asked_s = float("-inf")
        return done

    async def capture(self, ranks: Sequence[int], steps: int, *, stacks: bool = False) -> Answers:
        """Profile some steps of some ranks, and wait for the profiles.

        Raises:
            StepscopeError: If the manager cannot be asked, refuses, or too much is wanted.
        """
        if not 1 <= steps <= MOST_STEPS:
            raise StepscopeError(f"{steps} steps: give 1 to {MOST_STEPS}")
        if not 1 <= len(ranks) <= MOST_CAPTURED:
            raise StepscopeError(f"{len(ranks)} ranks: give 1 to {MOST_CAPTURED}")
        connected = _client()
        async with connected(self.address) as client:
            made: Answers = await client.capture(list(ranks), steps, stacks=stacks, wait_s=CAPTURED_WITHIN_S)
        self.asked_s = float("-inf")
        return made

    async def _status(self) -> Status:
        from stepscope.live.show.status import from_json  # noqa: PLC0415 - part of the extra `live`

        connected = _client()
        async with connected(self.address) as client:
            return from_json(await client.status())

    def _remember(self, found: Status) -> None:
        for rank in found.ranks:
            if not rank.recent:
                continue
            known = self.steps.get(rank.rank)
            if known is None or self._pids.get(rank.rank) != rank.pid:  # a restarted rank counts from the start
                known = self.steps[rank.rank] = deque(maxlen=KEPT_STEPS)
                self._pids[rank.rank] = rank.pid
            last = known[-1].step if known else -1
            known.extend(StepTime(*each) for each in rank.recent if each[0] > last)
        for one in list(self.steps)[: max(len(self.steps) - KEPT_RANKS, 0)]:
            del self.steps[one], self._pids[one]


def _client() -> Any:
    """What makes connections to a manager.

    Raises:
        StepscopeError: If gRPC is not installed.
    """
    try:
        from stepscope.live.control.client import connected  # noqa: PLC0415 - part of the extra `live`
    except ImportError as error:
        raise StepscopeError(f"{INSTALL} ({error})") from error
    return connected
