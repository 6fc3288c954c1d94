"""Plays a simulated job to a detector as a manager would: batches of digests within a second, and looks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from simulated_live.jobs import Job
from simulated_live.simulate import S, Simulation
from stepscope.live.messages import Digest, Hello
from stepscope.live.verdicts import Verdict

LOOK_S = 0.25
"""How often the manager looks."""


class Watches(Protocol):
    """A detector."""

    @property
    def wants_communication(self) -> bool: ...

    def hello(self, hello: Hello) -> None: ...

    def digest(self, digest: Digest) -> None: ...

    def look(self, now_ns: int) -> list[Verdict]: ...


@dataclass
class Told:
    """A verdict, and when it came."""

    verdict: Verdict
    at_s: float
    step: int
    """The last step that had ended then."""


@dataclass
class Played:
    """What a detector said of a job."""

    job: Job
    told: list[Told] = field(default_factory=list)
    ends_s: list[float] = field(default_factory=list)
    """When each step ended."""
    digests: int = 0
    cpu_s: float = 0.0
    """Of the detector alone."""


def play(job: Job, detector: Watches, beside: Callable[[int, list[Digest]], None] | None = None) -> Played:
    """Run a job to its end; `beside` gets the digests of each step as well."""
    simulation = Simulation(job)
    played = Played(job)
    draw = random.Random(job.seed + 1)
    clock = time.process_time
    for hello in simulation.hellos():
        detector.hello(hello)
    hosts = len(set(simulation.hosts))
    queue: list[tuple[float, int, list[Digest]]] = []
    lags = [draw.uniform(0.0, 1.0) for _ in range(hosts)]
    next_look = LOOK_S
    for number, (end_s, digests) in enumerate(simulation.steps(), 1):
        played.ends_s.append(end_s)
        if beside is not None:
            beside(number, digests)
        by_host: dict[int, list[Digest]] = {}
        for digest in digests:
            by_host.setdefault(digest.rank // 8, []).append(digest)
        for host, some in by_host.items():
            # a proxy sends what it has once a second
            sent_s = int(end_s - lags[host]) + 1 + lags[host]
            queue.append((sent_s, host, some))
        while next_look <= end_s:
            began = clock()
            due = [item for item in queue if item[0] <= next_look]
            queue = [item for item in queue if item[0] > next_look]
            due.sort(key=lambda item: (item[0], item[1]))
            for _, _, some in due:
                for digest in some:
                    detector.digest(digest)
                    played.digests += 1
            news = detector.look(round(1.7e18 + next_look * S))
            played.cpu_s += clock() - began
            played.told += [Told(verdict, next_look, number - 1) for verdict in news]
            if job.follow and detector.wants_communication:
                simulation.communication = True
            next_look += LOOK_S
    return played
