"""The ranks of a job: who takes part, through which node, and who has gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.errors import StepscopeError
from stepscope.live.control.bounds import Bounds
from stepscope.live.control.link import NotAccepted
from stepscope.live.control.status import Change, RankChange
from stepscope.live.messages import Digest, Hello, Pulse
from stepscope.selection import describe_numbers, named_numbers


class UnknownRank(StepscopeError):
    """A rank that takes no part was named in a command; nothing was done."""


@dataclass
class RankState:
    """What is known of a rank.

    Args:
        hello: Its last registration.
        node: Name of the proxy that it is connected to.
        alive: Whether it takes part at the moment.
        last_seen_ns: When it was last heard of, since the epoch on the manager's clock.
        pulse: Its last pulse.
        digest: Its last step.
    """

    hello: Hello
    node: str
    alive: bool
    last_seen_ns: int
    heard_s: float
    """The same on a clock that never goes back."""
    pulse: Pulse | None = None
    digest: Digest | None = None


class Registry:
    """All ranks that have ever registered with this manager.

    Args:
        now_s: A clock that never goes back, in seconds.
    """

    def __init__(self, bounds: Bounds, now_s: Callable[[], float] = time.monotonic) -> None:
        self.ranks: dict[int, RankState] = {}
        self._bounds, self._now_s = bounds, now_s

    def hello(self, node: str, hello: Hello) -> RankChange | None:
        """A rank registers; what has changed, if anything has.

        Raises:
            NotAccepted: If a newer process has this rank.
        """
        known = self.ranks.get(hello.rank)
        state = RankState(hello, node, True, time.time_ns(), self._now_s())
        if known is None:
            change: Change = "joined"
        elif _process(known.hello) == _process(hello):
            state.pulse, state.digest = known.pulse, known.digest
            if known.alive:
                self.ranks[hello.rank] = state
                return None
            change = "returned"
        else:
            if known.alive and known.node != node and known.hello.started_at_ns > hello.started_at_ns:
                raise NotAccepted(
                    f"a newer process ({known.hello.pid} on {known.hello.host}) is rank {hello.rank} of this job"
                )
            change = "restarted"
        self.ranks[hello.rank] = state
        return self._change(hello.rank, change)

    def heard(self, rank: int, node: str) -> tuple[RankState | None, RankChange | None]:
        """Something came from a rank through a node: its state, None if it is not registered there."""
        state = self.ranks.get(rank)
        if state is None or state.node != node:
            return None, None
        state.last_seen_ns, state.heard_s = time.time_ns(), self._now_s()
        if state.alive:
            return state, None
        state.alive = True
        return state, self._change(rank, "returned")

    def left(self, rank: int, started_at_ns: int) -> RankChange | None:
        """A process has ended."""
        state = self.ranks.get(rank)
        if state is None or not state.alive or state.hello.started_at_ns != started_at_ns:
            return None
        state.alive = False
        return self._change(rank, "left")

    def silent(self) -> list[RankChange]:
        """Ranks that are lost from now on, since nothing was heard of them for too long."""
        before_s = self._now_s() - self._bounds.lost_after_s
        lost = [rank for rank, state in self.ranks.items() if state.alive and state.heard_s < before_s]
        for rank in lost:
            self.ranks[rank].alive = False
        return [self._change(rank, "lost") for rank in lost]

    def alive(self) -> list[int]:
        """Ranks that take part, sorted."""
        return sorted(rank for rank, state in self.ranks.items() if state.alive)

    def chosen(self, ranks: list[int]) -> dict[int, RankState]:
        """Some ranks that take part; all for an empty list.

        Raises:
            UnknownRank: If one of them does not.
        """
        there = self.alive()
        unknown = sorted(set(ranks) - set(there))
        if unknown or not there:
            raise UnknownRank(
                f"{named_numbers('rank', unknown)}: not connected. Connected ranks: {describe_numbers(there)}"
                if there
                else "no rank of the job is connected. Check with: stepscope live status"
            )
        return {rank: self.ranks[rank] for rank in sorted(set(ranks)) or there}

    def _change(self, rank: int, change: Change) -> RankChange:
        state = self.ranks[rank]
        return RankChange(rank, change, state.hello.host, state.node, time.time_ns())


def _process(hello: Hello) -> tuple[str, int, int]:
    return hello.host, hello.pid, hello.started_at_ns
