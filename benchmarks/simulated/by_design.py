"""Jobs of which some ranks or stages do work that others do not have."""

from __future__ import annotations

from simulated.chosen import Family, shape_of
from simulated.faults import (
    Fault,
    kernels,
)
from simulated.truth import Job
from simulated.uneven import EMBEDDING, METRICS, OUTPUT, UNEVEN, on_rank, on_stage


def output_layer(slow: bool) -> Family:
    """The last stage has an output layer, with one rank a stage or several; another rank, or the last, is slow."""

    def family(number: int) -> Job:
        name, shape = shape_of(number, "pp4", ranks=(4, 8)[number % 2 and not slow], layers=2 + number % 3)
        last = tuple(shape.stage_ranks(shape.stages - 1))
        faults = [Fault(UNEVEN, "stage" if len(last) > 1 else "rank", last)]
        if slow:
            faults.append(Fault("computing", "rank", ((last[0], 1)[number % 2],), kernels((1.3, 1.6)[number % 2])))
        return Job(name, shape, faults, source=on_stage(-1, 3.0), uneven=OUTPUT)

    return family


def metrics(slow: bool) -> Family:
    """A rank computes metrics that the others wait for; another rank, or the same, is slow."""

    def family(number: int) -> Job:
        name, shape = shape_of(number, "dp8", "tp4", "zero8")
        faults = [Fault(UNEVEN, "rank", (0,))]
        if slow:
            faults.append(Fault("computing", "rank", ((0, 5)[number % 2],), kernels(1.3)))
        return Job(name, shape, faults, source=on_rank(0, 14.0, (1, 8)[number % 2]), uneven=METRICS)

    return family


def small_embedding(number: int) -> Job:
    """The first stage has an embedding that hardly costs anything, as another stage is as long."""
    name, shape = shape_of(number, "pp4", ranks=(4, 8)[number % 2], layers=4)
    return Job(name, shape, source=on_stage(0, 0.3, EMBEDDING))
