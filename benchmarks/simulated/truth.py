"""A job with faults, and what they cost: the same job simulated again without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from simulated.faults import Fault, faulted, slowed
from simulated.layouts import Shape, call_noise, network_of, programs_of
from simulated.operations import Network, Operation
from simulated.simulate import Times, simulate
from simulated.uneven import UNEVEN, evened

STEP_NUMBER = 3
"""Number of the first step, as schedules skip some."""


@dataclass(frozen=True)
class Truth:
    """What is known of a job; lengths in ns, per step."""

    name: str
    ranks: int
    steps: int
    step_ns: float
    loss_ns: float
    """What mending all faults saves."""
    costs: Sequence[tuple[Fault, float]]
    """The faults, and what mending each alone saves."""
    first_step: int

    @property
    def loss_share(self) -> float:
        return self.loss_ns / self.step_ns


@dataclass
class Job:
    """A job whose losses are known.

    Args:
        name: What it is an example of.
        shape: The job.
        faults: What is wrong with it.
        links: Whether the times of links are recorded.
        on_disk: Whether it must be read from traces, as names decide what it does.
        on_cpu: Whether its ranks have no device; `source` makes such programs.
        source: Makes the programs of its ranks.
        uneven: Kernels that only some ranks run, by design. Without a fault of the kind `uneven`, all divide them.
    """

    name: str
    shape: Shape
    faults: Sequence[Fault] = ()
    links: bool = False
    on_disk: bool = False
    on_cpu: bool = False
    source: Callable[[Shape], dict[int, list[list[Operation]]]] = programs_of
    uneven: str = ""

    @cached_property
    def times(self) -> Times:
        return self._simulated(self.faults)

    @property
    def network(self) -> Network:
        return slowed(network_of(self.shape), self.faults)

    @cached_property
    def loss_ns(self) -> list[int]:
        """What all faults together cost, by step."""
        return self._difference(())

    def loss_without(self, fault: Fault) -> float:
        """What mending one fault alone saves, per step."""
        rest = [other for other in self.faults if other is not fault]
        return sum(self._difference(rest)) / self.shape.steps

    @property
    def mean_loss_ns(self) -> float:
        return sum(self.loss_ns) / self.shape.steps

    @property
    def truth(self) -> Truth:
        shape, alone = self.shape, len(self.faults) == 1
        costs = [(fault, self.mean_loss_ns if alone else self.loss_without(fault)) for fault in self.faults]
        step_ns = self.times.total_ns / shape.steps
        return Truth(self.name, shape.ranks, shape.steps, step_ns, self.mean_loss_ns, costs, STEP_NUMBER)

    def _difference(self, faults: Sequence[Fault]) -> list[int]:
        mended = self._simulated(faults)
        return [with_all - without for with_all, without in zip(self.times.step_ns, mended.step_ns, strict=True)]

    def _simulated(self, faults: Sequence[Fault]) -> Times:
        shape = self.shape
        programs = self.source(shape)
        if self.uneven and not any(fault.kind == UNEVEN for fault in faults):
            programs = evened(programs, self.uneven)
        return simulate(faulted(programs, faults), slowed(network_of(shape), faults), call_noise(shape))
