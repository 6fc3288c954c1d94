"""What the views need of a manager: only this, so that they can be tested, and reused, without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from stepscope.live.messages import Hello, Pulse
from stepscope.live.switches import Switches
from stepscope.live.verdicts import Verdict


@runtime_checkable
class RequestedState(Protocol):
    """A state of the switches that was asked for (`control.board.Requested`)."""

    @property
    def revision(self) -> int:
        """Counts requests; 0 if nobody has switched yet."""

    @property
    def switches(self) -> Switches:
        """Which kinds are on."""

    @property
    def by(self) -> str:
        """Who asked."""

    @property
    def at_ns(self) -> int:
        """When, since the epoch."""


class AppliedState(Protocol):
    """What a rank has last reported of the switches (`control.board.Acknowledgement`)."""

    @property
    def revision(self) -> int:
        """Of the state that it has applied."""

    @property
    def error(self) -> str:
        """Why it could not."""

    @property
    def at_ns(self) -> int:
        """When its answer arrived, on the manager's clock."""


class WatchedBoard(Protocol):
    """The state of the switches (`control.board.Board`)."""

    @property
    def requested(self) -> RequestedState:
        """The state from now on."""

    @property
    def acknowledged(self) -> Mapping[int, AppliedState]:
        """By rank; of ranks that take part now."""


class WatchedRank(Protocol):
    """A rank as the manager knows it (`control.manager.RankState`)."""

    @property
    def hello(self) -> Hello:
        """Its last registration."""

    @property
    def alive(self) -> bool:
        """Whether it takes part now."""

    @property
    def last_seen_ns(self) -> int:
        """When it was last heard, since the epoch on the manager's clock."""

    @property
    def pulse(self) -> Pulse | None:
        """Its last pulse."""


class Watched(Protocol):
    """A manager (`control.manager.Manager`)."""

    @property
    def job(self) -> str:
        """Task id."""

    @property
    def board(self) -> WatchedBoard:
        """State of the switches."""

    @property
    def ranks(self) -> Mapping[int, WatchedRank]:
        """By global rank."""

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """By key: open ones, and those that are over."""

    @property
    def lag_ns(self) -> int | None:
        """How far the detector is behind; None without one."""

    @property
    def capture_begun(self) -> list[Callable[[str, list[int]], None]]:
        """Called with the id and the ranks of each capture that begins."""

    def listen(self, callback: Callable[[Any], None]) -> object:
        """Call a function in the event loop with each digest, pulse, verdict, request and change of a rank."""
