"""Made-up jobs: what a manager would hold, without any process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stepscope.live.control.board import Acknowledgement, Requested
from stepscope.live.messages import Digest, Hello, Pulse
from stepscope.live.show.status import Status
from stepscope.live.show.view import view_of
from stepscope.live.switches import DEFAULT
from stepscope.live.verdicts import Cause, Verdict

MS = 1_000_000


@dataclass
class MadeRank:
    hello: Hello
    alive: bool = True
    last_seen_ns: int = 0
    pulse: Pulse | None = None


@dataclass
class MadeBoard:
    requested: Requested = field(default_factory=Requested)
    acknowledged: dict[int, Acknowledgement] = field(default_factory=dict)


@dataclass(eq=False)
class MadeManager:
    job: str = "job-7"
    board: MadeBoard = field(default_factory=MadeBoard)
    ranks: dict[int, MadeRank] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    lag_ns: int | None = 0
    capture_begun: list[Callable[[str, list[int]], None]] = field(default_factory=list)
    listeners: list[Callable[[Any], None]] = field(default_factory=list)

    def listen(self, callback: Callable[[Any], None]) -> None:
        self.listeners.append(callback)

    def happen(self, *events: Any) -> None:
        for event in events:
            if isinstance(event, Verdict):
                self.verdicts[event.key] = event
            elif isinstance(event, Pulse):
                self.ranks[event.rank].pulse = event
            elif isinstance(event, Requested):
                self.board.requested = event
            for listener in list(self.listeners):
                listener(event)

    def join(self, rank: int, host: str = "", **more: Any) -> None:
        now_ns = time.time_ns()
        fields = {"world_size": None, "framework": "pytorch", "device": "cpu", "directory": f"/rec/{self.job}/{rank}"}
        hello = Hello(
            job=self.job,
            rank=rank,
            pid=1000 + rank,
            host=host or f"node{rank // 8}",
            started_at_ns=now_ns,
            **(fields | more),
        )
        self.ranks[rank] = MadeRank(hello, last_seen_ns=now_ns)
        self.board.acknowledged[rank] = Acknowledgement(self.board.requested.revision, DEFAULT, now_ns)


def made_job(ranks: int = 4, steps: int = 12, slow: dict[int, float] | None = None, **more: Any) -> MadeManager:
    """A job whose ranks have done some steps of 100 ms; slow ones spend more of them on the forward pass."""
    manager = MadeManager(**more)
    view_of(manager)
    for rank in range(ranks):
        manager.join(rank)
    for step in range(1, steps + 1):
        for rank in range(ranks):
            manager.happen(digest(rank, step, (slow or {}).get(rank, 1.0)))
    for rank in range(ranks):
        manager.happen(Pulse(rank=rank, step=steps, idle_ns=MS))
    return manager


def digest(rank: int, step: int, ratio: float = 1.0) -> Digest:
    return Digest(
        rank=rank,
        step=step,
        end_at_ns=step * 100 * MS,
        step_ns=100 * MS,
        forward_ns=int(30 * MS * ratio),
        data_ns=5 * MS,
        checkpoint_ns=0,
    )


def slow_rank(rank: int = 2, **more: Any) -> Verdict:
    fields: dict[str, Any] = {
        "key": f"slow_compute:{rank}",
        "cause": Cause.COMPUTE,
        "ranks": [rank],
        "since_step": 40,
        "since_at_ns": 1,
        "ratio": 1.5,
        "cost_ns": 62 * MS,
        "sureness": 0.98,
    }
    return Verdict(**(fields | more))


def status_of(manager: MadeManager, now_ns: int | None = None) -> Status:
    """What a job is doing."""
    return view_of(manager).status(now_ns)
