"""What is simulated: layouts, noise, faults, and what a detector should find.

Sources of the noise. Each rank's compute varies by 3 to 5 % from step to step (asked of the detector by its task; step
times of GPU clusters vary by 1 to 20 %: Guard, MLSys'26). Devices differ by about 1 % for good (healthy hosts of
MegaScale, NSDI'24, are far within 10 %). Hosts wander together: an autoregressive factor with a time constant of 10 to
50 steps, and a slow wave over an hour. Stalls strike any rank in 0.3 to 1 % of its steps, with a heavy tail (Pareto,
exponent 1.5). Garbage collection: each 50 to 200 steps, 30 to 120 ms, at other steps on each rank, as Python does it
by itself (OSDI'25: +12.6 % when planned). Loaders: waits of milliseconds, and in 1 % of the steps an exponential one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

HOST_RANKS = 8


@dataclass(frozen=True)
class Noise:
    """Sizes are standard deviations of logarithms unless stated otherwise."""

    step: float = 0.04
    ranks: float = 0.01
    """Lasting differences of ranks."""
    host: float = 0.01
    """Of hosts, which hang together from step to step."""
    host_memory: float = 0.94
    """How much of it is left after a step."""
    drift: float = 0.015
    """Amplitude of a wave over an hour, per rank and host."""
    stalls: float = 0.005
    """Rate per rank and step."""
    stall_ratio: float = 0.1
    """Of a step, the least stall; Pareto from there."""
    garbage_every: int = 110
    garbage_s: float = 0.07
    garbage_shown: bool = True
    loader_s: float = 0.002
    loader_stalls: float = 0.01
    loader_stall_s: float = 0.05
    checkpoint_every: int = 150
    checkpoint_s: float = 1.5
    checkpoint_noise: float = 0.15
    links: float = 0.1
    """Of transfers from step to step."""
    links_apart: float = 0.05
    """Lasting differences of links."""


@dataclass(frozen=True)
class Layout:
    """Tensor, pipeline and data parallel sizes; ranks are numbered in this order: tensor, data, pipeline."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 8
    last_stage: float = 1.15
    """How much longer the last stage takes, by design."""
    micro_batches: int = 8

    @property
    def world(self) -> int:
        return self.tensor * self.pipeline * self.data

    def place(self, rank: int) -> tuple[int, int, int]:
        """Position of a rank: tensor, data, pipeline."""
        return rank % self.tensor, rank // self.tensor % self.data, rank // (self.tensor * self.data)

    def rank(self, tensor: int, data: int, pipeline: int) -> int:
        """The rank at a position."""
        return (pipeline * self.data + data) * self.tensor + tensor


@dataclass(frozen=True)
class Fault:
    """Something that is slow.

    Args:
        kind: `compute`, `data`, `checkpoint`, `link` (a group), `send` (a pair), `garbage`, `job` (all ranks).
        factor: How many times as long; of `data`, the wait is longer by `factor - 1` steps; of `garbage`, a collection
            takes `factor - 1` steps.
        ranks: Who is slow; of a link, its members.
        first, last: Steps, inclusive; None is to the end.
        every: Only in each n-th step.
        rotates: Each step another one of the ranks.
    """

    kind: str
    factor: float
    ranks: tuple[int, ...] = ()
    first: int = 1
    last: int | None = None
    every: int = 1
    rotates: bool = False

    def strikes(self, rank: int, step: int) -> bool:
        """Whether a rank is slow in a step."""
        if step < self.first or (self.last is not None and step > self.last) or step % self.every:
            return False
        if self.kind == "job":
            return True
        return rank == self.ranks[step % len(self.ranks)] if self.rotates else rank in self.ranks


@dataclass(frozen=True)
class Job:
    """A job to simulate.

    Args:
        lengths: `fixed`, `same` (other lengths in each step, the same on all ranks) or `each` (other ones on each).
        units_known: Whether digests state the lengths.
        device: Whether digests are those of an accelerator: what the host launches takes short.
        communication: Whether the switch is on; `follow` turns it on when the detector wants it.
        starts: Steps of the warm-up, which take up to 20 times as long.
        evaluates: Each how many steps rank 0 or all evaluate, within a step; 0 for never.
    """

    name: str
    layout: Layout
    step_s: float = 0.5
    steps: int = 400
    noise: Noise = Noise()
    faults: tuple[Fault, ...] = ()
    lengths: str = "fixed"
    length_spread: float = 0.25
    units_known: bool = True
    device: bool = False
    communication: bool = False
    follow: bool = False
    starts: int = 3
    evaluates: int = 0
    seed: int = 0
    groups_named: bool = True
    family: str = "healthy"
    magnitude: str = ""
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def onset(self) -> int:
        """First step with a fault."""
        return min((fault.first for fault in self.faults), default=1)
