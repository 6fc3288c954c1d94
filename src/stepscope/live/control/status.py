"""What manager and proxy know at the moment, as clients get it, and events that are no messages of workers."""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.live.messages import Digest, Hello, Pulse
from stepscope.live.verdicts import Verdict

Change = Literal["joined", "restarted", "returned", "lost", "left"]


class RankChange(msgspec.Struct, omit_defaults=True, frozen=True):
    """A rank came or went.

    Args:
        change: `joined` for the first time, `restarted` as another process, `returned` after it was lost, `lost` since
            it has not been heard of for some time, or `left` since its process has ended.
        host: Where it runs or ran.
        node: Name of the proxy that it is connected to.
        at_ns: When the manager noticed.
    """

    rank: int
    change: Change
    host: str
    node: str
    at_ns: int


class SwitchEvent(msgspec.Struct, omit_defaults=True, frozen=True):
    """The state of the switches that is in force from now on; 0 is the revision of a state that nobody asked for."""

    revision: int
    switches: list[str]
    by: str
    at_ns: int


class RankStatus(msgspec.Struct, omit_defaults=True, frozen=True):
    """What is known of one rank.

    Args:
        alive: Whether it takes part at the moment; False after it was lost or has ended.
        node: Name of the proxy that it is connected to.
        last_seen_ns: When something was last heard of it, on the clock of the manager.
        revision: Of the state of the switches that it has applied.
        switches: Kinds that it records.
        applied_after_ns: How long after the request its answer arrived; None if it has not applied the state, or has
            joined later.
        error: Why it could not apply the state.
        pulse: Its last pulse.
        digest: Its last step.
    """

    hello: Hello
    alive: bool
    node: str
    last_seen_ns: int
    revision: int = 0
    switches: list[str] = []
    applied_after_ns: int | None = None
    error: str = ""
    pulse: Pulse | None = None
    digest: Digest | None = None

    @property
    def rank(self) -> int:
        """Its global rank."""
        return self.hello.rank


class NodeInfo(msgspec.Struct, omit_defaults=True, frozen=True):
    """A proxy that the manager knows; `ranks` are those that take part through it."""

    name: str
    host: str
    connected: bool
    ranks: list[int] = []


class Status(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a manager knows of its job at the moment.

    Args:
        job: Task id; empty as long as no worker has registered.
        at_ns: Now, on the clock of the manager.
        started_at_ns: When the manager was started.
        pending: Ranks that take part and have not applied the state of the switches.
        ranks: By rank, also those that have left.
        verdicts: Those that are open, and the last ones that are over.
        figures: Figures of the manager itself, by name; names end in their units.
    """

    job: str
    at_ns: int
    started_at_ns: int
    requested: SwitchEvent
    pending: list[int] = []
    nodes: list[NodeInfo] = []
    ranks: list[RankStatus] = []
    verdicts: list[Verdict] = []
    figures: dict[str, float] = {}


class NodeStatus(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a proxy knows of its node at the moment.

    Args:
        manager: Address of its manager.
        connected: Whether it has a link to it.
        revision: Of the newest state of the switches that it knows.
        workers: Hello of each worker that is connected.
        waiting: Messages that wait for the manager.
        lost: Lines with digests that were dropped so far.
    """

    name: str
    host: str
    job: str
    manager: str
    connected: bool
    revision: int
    switches: list[str] = []
    workers: list[Hello] = []
    waiting: int = 0
    lost: int = 0
