"""The jobs that are simulated: faults of each family at several sizes, and healthy jobs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from simulated_live.jobs import Fault, Job, Layout, Noise

FACTORS = (1.1, 1.3, 2.0)
HELD_OUT_FACTORS = (1.1, 1.15, 1.3, 1.5, 2.0)
"""For figures that are reported; 1.15 and 1.5 were never used to choose limits."""
HELD_OUT_SEED = 300_000
"""Seeds from here on were never used to choose limits."""
LONG_STEPS, STEPS = 420, 260
WEAK = 1.2
"""Smaller faults get more steps."""

Draw = random.Random
Family = Callable[[Draw, float], Job]


def cases(count: int, seed: int, factors: tuple[float, ...], only: str = "") -> Iterator[Job]:
    """Jobs with faults, family by family in turn.

    Args:
        count: How many.
        seed: Of the first; others follow.
        factors: Sizes of the faults.
        only: Part of a family's name.
    """
    families = [(name, family) for name, family in FAMILIES.items() if only in name]
    for number in range(count):
        name, family = families[number % len(families)]
        factor = factors[number // len(families) % len(factors)]
        job = family(Draw(seed + number), factor)
        steps = LONG_STEPS if factor < WEAK else STEPS
        job = replace(
            job,
            name=f"{name} {number}",
            family=name,
            magnitude=job.magnitude or f"x{factor}",
            seed=seed + number,
            steps=job.steps if job.steps != 400 else steps,
        )
        yield job


def healthy(hours: float, seed: int) -> Iterator[Job]:
    """Healthy jobs of several kinds, each of so many hours."""
    for number, (name, job) in enumerate(HEALTHY.items()):
        steps = round(hours * 3600 / job.step_s)
        yield replace(job, name=name, steps=steps, seed=seed + number, family="healthy")


def _noise(draw: Draw) -> Noise:
    return Noise(
        step=draw.uniform(0.03, 0.05),
        ranks=draw.uniform(0.005, 0.015),
        host=draw.uniform(0.004, 0.014),
        host_memory=draw.uniform(0.9, 0.98),
        stalls=draw.uniform(0.003, 0.01),
        garbage_every=draw.choice((60, 110, 200)),
        garbage_shown=draw.random() < 0.5,
        checkpoint_every=draw.choice((100, 150, 0)),
    )


def _flat(draw: Draw, *sizes: int) -> Job:
    """Data parallel only."""
    layout = Layout(data=draw.choice(sizes or (8, 16, 32, 64)))
    return Job("", layout, noise=_noise(draw), device=draw.random() < 0.3)


def _deep(draw: Draw, *, communication: bool = True) -> Job:
    """Tensor, pipeline and data parallel."""
    sizes = ((2, 2, 4), (4, 2, 4), (8, 2, 4), (2, 4, 4), (8, 1, 4), (4, 4, 4))
    tensor, pipeline, data = draw.choice(sizes)
    layout = Layout(tensor, pipeline, data, last_stage=draw.uniform(1.0, 1.25))
    return Job(
        "", layout, noise=_noise(draw), device=draw.random() < 0.5, communication=communication, follow=True,
        groups_named=draw.random() < 0.8,
    )  # fmt: skip


def _onset(draw: Draw) -> int:
    return draw.randint(70, 120)


def _some(draw: Draw, job: Job, count: int = 1) -> tuple[int, ...]:
    return tuple(sorted(draw.sample(range(job.layout.world), count)))


def _compute(draw: Draw, factor: float) -> Job:
    job = _flat(draw)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), _onset(draw)),))


def _compute_deep(draw: Draw, factor: float) -> Job:
    job = _deep(draw)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), _onset(draw)),))


def _compute_hidden(draw: Draw, factor: float) -> Job:
    job = _deep(draw, communication=False)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), _onset(draw)),), device=False)


def _start(draw: Draw, factor: float) -> Job:
    job = _flat(draw) if draw.random() < 0.7 else _deep(draw)
    job = replace(job, groups_named=True)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), 1),))


def _host(draw: Draw, factor: float) -> Job:
    job = _flat(draw, 16, 32, 64)
    host = draw.randrange(job.layout.world // 8)
    ranks = tuple(range(8 * host, 8 * host + 8))
    return replace(job, faults=(Fault("compute", factor, ranks, _onset(draw)),))


def _data(draw: Draw, factor: float) -> Job:
    job = _flat(draw)
    return replace(job, faults=(Fault("data", factor, _some(draw, job), _onset(draw)),))


def _checkpoint(draw: Draw, factor: float) -> Job:
    job = _flat(draw, 8, 16)
    size = max(2.0, 2 * factor - 1)
    noise = replace(job.noise, checkpoint_every=20)
    faults = (Fault("checkpoint", size, _some(draw, job), 101),)
    return replace(job, noise=noise, faults=faults, steps=600, magnitude=f"x{size:g}")


def _link(draw: Draw, factor: float) -> Job:
    job = _deep(draw)
    layout = job.layout
    size = max(2.0, 2 * factor)
    data, stage = draw.randrange(layout.data), draw.randrange(layout.pipeline)
    ranks = tuple(layout.rank(t, data, stage) for t in range(layout.tensor))
    return replace(job, faults=(Fault("link", size, ranks, _onset(draw)),), magnitude=f"x{size:g}", steps=STEPS)


def _send(draw: Draw, factor: float) -> Job:
    job = _deep(draw)
    while job.layout.pipeline == 1:
        job = _deep(draw)
    layout = job.layout
    size = max(2.0, 2 * factor)
    tensor, data, stage = (draw.randrange(n) for n in (layout.tensor, layout.data, layout.pipeline - 1))
    ranks = layout.rank(tensor, data, stage), layout.rank(tensor, data, stage + 1)
    return replace(job, faults=(Fault("send", size, ranks, _onset(draw)),), magnitude=f"x{size:g}", steps=STEPS)


def _garbage(draw: Draw, factor: float) -> Job:
    job = _flat(draw)
    every = draw.choice((4, 6, 8))
    size = max(1.3, factor)
    faults = (Fault("garbage", size, _some(draw, job), _onset(draw), every=every),)
    return replace(job, faults=faults, magnitude=f"x{size:g}", steps=LONG_STEPS)


def _several(draw: Draw, factor: float) -> Job:
    job = _flat(draw, 16, 32, 64)
    ranks = _some(draw, job, 3)
    faults = (
        Fault("compute", factor, ranks[:1], _onset(draw)),
        Fault("compute", factor, ranks[1:2], _onset(draw)),
        Fault("data", factor, ranks[2:], _onset(draw)),
    )
    return replace(job, faults=faults)


def _rotating(draw: Draw, factor: float) -> Job:
    job = _flat(draw, 8, 16, 32)
    size = max(1.3, factor)
    order = list(range(job.layout.world))
    draw.shuffle(order)
    faults = (Fault("compute", size, tuple(order), _onset(draw), rotates=True),)
    return replace(job, faults=faults, magnitude=f"x{size:g}", device=False)


def _intermittent(draw: Draw, factor: float) -> Job:
    job = _flat(draw)
    size = max(1.3, factor)
    faults = (Fault("compute", size, _some(draw, job), _onset(draw), every=draw.choice((2, 3, 5, 8))),)
    return replace(job, faults=faults, magnitude=f"x{size:g}", steps=LONG_STEPS)


def _recovering(draw: Draw, factor: float) -> Job:
    job = _flat(draw)
    first = _onset(draw)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), first, first + 110),))


def _job(draw: Draw, factor: float) -> Job:
    job = replace(_flat(draw), follow=False)
    return replace(job, faults=(Fault("job", factor, (), _onset(draw)),))


def _lengths(draw: Draw, factor: float) -> Job:
    job = replace(_flat(draw), lengths="each", length_spread=draw.uniform(0.1, 0.35), device=False)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), _onset(draw)),))


def _same_lengths(draw: Draw, factor: float) -> Job:
    job = replace(_flat(draw), lengths="same", length_spread=draw.uniform(0.1, 0.35))
    job = replace(job, units_known=draw.random() < 0.5)
    return replace(job, faults=(Fault("compute", factor, _some(draw, job), _onset(draw)),))


def _unknown_lengths(draw: Draw, factor: float) -> Job:
    job = replace(_flat(draw), lengths="each", length_spread=0.2, units_known=False)
    size = max(1.5, factor)
    faults = (Fault("compute", size, _some(draw, job), _onset(draw)),)
    return replace(job, faults=faults, magnitude=f"x{size:g}", steps=LONG_STEPS)


def _many(draw: Draw, factor: float) -> Job:
    job = _flat(draw, 128, 256)
    ranks = _some(draw, job) if draw.random() < 0.7 else tuple(range(16, 24))
    return replace(job, faults=(Fault("compute", factor, ranks, _onset(draw)),), steps=200)


FAMILIES: dict[str, Family] = {
    "compute": _compute,
    "compute, 3D": _compute_deep,
    "compute, 3D, communication off": _compute_hidden,
    "from the start": _start,
    "host": _host,
    "data": _data,
    "checkpoint": _checkpoint,
    "link": _link,
    "send": _send,
    "garbage": _garbage,
    "several": _several,
    "rotating": _rotating,
    "intermittent": _intermittent,
    "recovering": _recovering,
    "whole job": _job,
    "lengths known": _lengths,
    "lengths alike": _same_lengths,
    "lengths unknown": _unknown_lengths,
    "many ranks": _many,
}

HEALTHY: dict[str, Job] = {
    "data parallel, 8 ranks": Job("", Layout(data=8), noise=Noise(step=0.05, host=0.014, stalls=0.01)),
    "4 ranks, much noise": Job("", Layout(data=4), noise=Noise(step=0.08, host=0.02, stalls=0.02, garbage_shown=False)),
    "accelerators, 16 ranks": Job("", Layout(data=16), device=True, noise=Noise(step=0.03, host=0.012)),
    "3D, communication on": Job("", Layout(2, 2, 4, last_stage=1.25), communication=True),
    "3D, unnamed groups": Job("", Layout(2, 4, 2, last_stage=1.3), groups_named=False, device=True),
    "pipeline of 4": Job("", Layout(1, 4, 1, last_stage=1.3), communication=True),
    "each rank other lengths, known": Job("", Layout(data=8), lengths="each"),
    "each rank other lengths, unknown": Job("", Layout(data=8), lengths="each", units_known=False),
    "lengths alike, evaluation": Job("", Layout(data=8), lengths="same", units_known=False, evaluates=200),
    "short steps": Job("", Layout(data=4), step_s=0.05, noise=Noise(step=0.08, checkpoint_every=2000)),
}


def largest(ranks: int, seed: int) -> list[Job]:
    """Jobs of many ranks: a slow rank, a slow host, none."""
    layout = Layout(data=ranks)
    found = [
        Job("", layout, steps=120, faults=(Fault("compute", 1.3, (ranks // 3,), 60),), magnitude="x1.3"),
        Job("", layout, steps=160, faults=(Fault("compute", 1.1, (ranks // 2,), 60),), magnitude="x1.1"),
        Job("", layout, steps=120, faults=(Fault("compute", 1.3, tuple(range(8, 16)), 60),), magnitude="x1.3"),
    ]
    return [
        replace(job, name=f"{ranks} ranks {number}", family="largest", seed=seed + number)
        for number, job in enumerate(found)
    ]
