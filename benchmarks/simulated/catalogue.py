"""The jobs of the benchmark: every fault in several layouts, sizes and levels of noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice

from simulated.by_design import metrics, output_layer, small_embedding
from simulated.chosen import HOST_BOUND, Family, shape_of, victim_of
from simulated.faults import (
    FASTER,
    Change,
    Fault,
    kernels,
    launches,
    reads_back,
    stops,
    waits_for_data,
    waits_for_event,
)
from simulated.layouts import MS, US, Shape, noisier
from simulated.on_cpu import cpu_programs
from simulated.slow_links import LINKS
from simulated.truth import STEP_NUMBER, Job


def _slow(factor: float, match: str = "", reason: str = "") -> Family:
    def family(number: int) -> Job:
        name, shape = shape_of(number)
        fault = Fault("computing", "rank", (victim_of(shape, number),), kernels(factor, match), reason=reason)
        return Job(name, shape, [fault])

    return family


def _in_steps(which: Callable[[int], bool], steps: int, factor: float = 1.4) -> Family:
    def family(number: int) -> Job:
        name, shape = shape_of(number, "dp8", "dp4", "tp2", "zero8", steps=steps)
        chosen = frozenset(step for step in range(steps) if which(step))
        fault = Fault("computing", "rank", (victim_of(shape, number),), kernels(factor), steps=chosen)
        return Job(name, shape, [fault])

    return family


def _in_few(late: tuple[int, ...], steps: int, factor: float) -> Family:
    """A rank computes slowly in one or two steps of a short recording; a finding names the steps."""
    family = _in_steps(lambda step: step in late, steps, factor)

    def named(number: int) -> Job:
        job = family(number)
        words = f"in step {late[0] + STEP_NUMBER}" if len(late) == 1 else "in steps"
        return replace(job, faults=[replace(fault, reason=words) for fault in job.faults])

    return named


def _beside_a_slow_rank(number: int) -> Job:
    """A rank computes slowly in one step of four, another one in all."""
    job = _in_few((2,), 4, 2.0)(number)
    (once,) = job.faults
    other = (once.ranks[0] + 3) % job.shape.ranks
    return replace(job, faults=[once, Fault("computing", "rank", (other,), kernels(1.15))])


def _each_another(number: int) -> Job:
    """In each step of a short recording, another rank computes slowly."""
    name, shape = shape_of(number, "dp8", "dp4", "zero8", steps=4)
    return Job(name, shape, [Fault("computing", "rotating", tuple(range(shape.ranks)), kernels(1.6), rotates=True)])


def _host_in_one_step(number: int) -> Job:
    job = _node(number)
    (fault,) = job.faults
    return replace(job, faults=[replace(fault, change=kernels(1.5), steps=frozenset({3}), reason="in step 6")])


def _on_host(
    kind: str,
    change: Callable[[Shape], Change],
    *also: str,
    everyone: bool = False,
    reason: str = "",
    only: tuple[int, frozenset[int] | None] = (0, None),
) -> Family:
    """A fault of the host of one rank (or of each) of a data-parallel job, in some steps only (`only`: how many steps
    there are, and which)."""

    def family(number: int) -> Job:
        steps, struck = only
        name, shape = shape_of(number, "dp8", "dp4", "zero8", "tp2", **({"steps": steps} if steps else {}))
        ranks = tuple(range(shape.ranks)) if everyone else (victim_of(shape, number),)
        unit = "job" if everyone else "rank"
        fault = Fault(kind, unit, ranks, change(shape), steps=struck, also=also, reason=reason)
        return Job(name, shape, [fault])

    return family


def _marked(kind: str, name: str, category: str, reason: str) -> Family:
    """The host of one rank stops for something that the recording shows."""
    return _on_host(kind, lambda shape: stops(shape.kernel_ns * 60, name, category), reason=reason)


def _tensor_group(number: int) -> Job:
    name, shape = shape_of(number, "tp4", "tp2", "tp2pp2")
    ranks = tuple(shape.tensor_ranks(victim_of(shape, number)))
    return Job(name, shape, [Fault("computing", "tensor group", ranks, kernels(1.3))])


def _node(number: int) -> Job:
    _, shape = shape_of(number, "dp16 on 2 hosts", ranks=(24, 32)[number % 2], layers=2, steps=5)
    ranks = tuple(shape.host_ranks(1 + number % 2))
    return Job("dp on hosts", shape, [Fault("computing", "host", ranks, kernels(1.2))])


def _stage(number: int) -> Job:
    name, shape = shape_of(number, "pp4", "tp2pp2")
    ranks = tuple(shape.stage_ranks((1 + number // 2) % shape.stages))
    return Job(name, shape, [Fault("computing", "stage", ranks, kernels(1.3))])


def _most(number: int) -> Job:
    name, shape = shape_of(number, "dp4")
    ranks = tuple(rank for rank in range(4) if rank != number % 4)
    return Job(name, shape, [Fault("computing", "ranks", ranks, kernels(1.3))])


def _rotating(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "dp4", "zero8", steps=16)
    return Job(name, shape, [Fault("computing", "rotating", tuple(range(shape.ranks)), kernels(1.6), rotates=True)])


def _outlier(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "dp4", steps=(10, 20)[number % 2])
    everyone = tuple(range(shape.ranks))
    change = stops(4_600 * MS)
    if number % 2:
        return Job(
            name,
            shape,
            [Fault("outlier", "rank", (victim_of(shape, number),), change, steps=frozenset({6}), also=("dispatch",))],
        )
    return Job(name, shape, [Fault("outlier", "job", everyone, change, steps=frozenset({6}), also=("dispatch",))])


def _dispatch(number: int) -> Job:
    name, changes = (("dp8", {}), ("tp2", {"tensor": 2}), ("zero8", {"sharded": True}))[number % 3]
    shape = noisier(replace(HOST_BOUND, seed=number, **changes), number % 5)
    return Job(f"host-bound {name}", shape, [Fault("dispatch", "rank", (victim_of(shape, number),), launches(20 * US))])


def _bubble(number: int) -> Job:
    """The host of a rank of the last stage stops while its first input is still on its way through the pipeline."""
    name, shape = shape_of(number, "pp4")
    rank = shape.rank_at(3, number % shape.copies, 0)
    return Job(name, shape, [Fault("dispatch", "rank", (rank,), stops(shape.kernel_ns * 26, place=0.02))])


def _two_slow(number: int) -> Job:
    """Two ranks in different groups; the later one hides part of the other."""
    name, shape = shape_of(number, "tp4", "tp2", "tp2pp2")
    one, other = shape.rank_at(0, 0, 1), shape.rank_at(shape.stages - 1, 1, 0)
    faults = [Fault("computing", "rank", (one,), kernels(1.3)), Fault("computing", "rank", (other,), kernels(1.25))]
    return Job(name, shape, faults)


def _all_in_some_steps(number: int) -> Job:
    """The kernels of all ranks take longer in some steps, as when others use the same devices."""
    name, shape = shape_of(number, "dp8", "tp4", "zero8", "dp4", steps=(20, 12)[number % 2])
    steps = frozenset((range(5, 9), (3, 7, 8))[number % 2])
    change = kernels((1.5, 2.0)[number % 2], ("", "flash")[number % 2])
    return Job(name, shape, [Fault("computing", "job", tuple(range(shape.ranks)), change, steps=steps)])


def _all_but_one(number: int) -> Job:
    """All ranks but one are slow, or this one is special: the recording does not show which."""
    name, shape = shape_of(number, "dp8", "zero8", "dp16 on 2 hosts")
    ranks = tuple(rank for rank in range(shape.ranks) if rank != victim_of(shape, number))
    return Job(name, shape, [Fault(FASTER, "all but one", ranks, kernels(1.3))])


def _hidden_by_a_device(number: int) -> Job:
    """All hosts launch slowly, and one device is far slower: mending either saves little, both together most."""
    shape = noisier(replace(HOST_BOUND, gap_ns=8 * US, seed=number, steps=5), number % 5)
    slow = Fault("computing", "rank", (victim_of(shape, number),), kernels(6.0))
    return Job("host-bound dp8", shape, [slow, Fault("dispatch", "job", tuple(range(8)), launches(80 * US))])


def _two_kinds(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "zero8")
    faults = [
        Fault("computing", "rank", (2,), kernels(1.2)),
        Fault("data_loading", "rank", (5,), waits_for_data(shape.kernel_ns * 20)),
    ]
    return Job(name, shape, faults)


def _loader_of_two(number: int) -> Job:
    _, shape = shape_of(number, "dp4", ranks=2)
    return Job("dp2", shape, [Fault("data_loading", "rank", (number % 2,), waits_for_data((34, 8)[number % 2] * MS))])


def _clock(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "tp4", "zero8")
    fault = Fault(
        "computing",
        "rank",
        (victim_of(shape, number),),
        kernels(1800 / 1450),
        counters=(("sm_clock_mhz", 1800.0, 1450.0),),
        reason="1450",
    )
    return Job(name, shape, [fault])


def _hole(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "dp4", "zero8")
    hole = Fault("dependency", "job", tuple(range(shape.ranks)), waits_for_event(64 * MS), also=("waiting", "dispatch"))
    return Job(name, replace(shape, kernel_ns=450 * US, synchronises=number % 3 == 2), [hole])


def _healthy(**changes: object) -> Family:
    def family(number: int) -> Job:
        name, shape = shape_of(number, **changes)
        return Job(name, shape)

    return family


def _healthy_host_bound(number: int) -> Job:
    steady, waits = number % 2 == 1, number % 3 != 2
    shape = replace(HOST_BOUND, seed=number, skew_ns=20 * US, steady_skew=steady, synchronises=waits)
    return Job("host-bound dp8", noisier(shape, number % 5))


def _few_steps(number: int) -> Job:
    """A short recording with random stalls, of uneven batches every third time."""
    steps, uneven = (2, 3, 4)[number % 3], (0.0, 0.0, 0.03)[number // 3 % 3]
    shape = {"stall_ns": 5 * MS, "stalls": (0.02, 0.05, 0.1)[number // 2 % 3], "steps": steps, "work_noise": uneven}
    return _healthy(**shape)(number)


def _expert_library(*factors: float) -> Family:
    """Experts whose tokens a library of its own exchanges, hidden by computing; a rank computes slowly, or none."""

    def family(number: int) -> Job:
        _, shape = shape_of(number, "experts8", experts=True, internode=True, layers=2, steps=5)
        faults = [Fault("computing", "rank", (victim_of(shape, number),), kernels(factor)) for factor in factors]
        return Job("experts, traces", shape, faults, on_disk=True)

    return family


def _cpu(*faults: tuple[str, Change]) -> Family:
    """A job without devices, whose rank loses time in some way, or none."""

    def family(number: int) -> Job:
        shape = noisier(Shape(ranks=(4, 8)[number % 2], kernel_ns=MS, gap_ns=60 * US, seed=number, steps=6), number % 5)
        found = [Fault(kind, "rank", (victim_of(shape, number),), change) for kind, change in faults]
        return Job("CPU", shape, found, on_cpu=True, source=cpu_programs)

    return family


HEALTHY: dict[str, Family] = {
    "healthy": _healthy(),
    "healthy, random 5 ms stalls": _healthy(stall_ns=5 * MS, stalls=0.15),
    "healthy, skew of 20 us, host-bound": _healthy_host_bound,
    "healthy, exposed communication": _healthy(layer_bytes=200_000_000),
    "healthy, uneven batches": _healthy(work_noise=0.03),
    "healthy, expert library": _expert_library(),
    "healthy, CPU": _cpu(),
    "healthy, few steps, random stalls": _few_steps,
    "healthy, small embedding": small_embedding,
    "healthy, clocks of hosts differ": _healthy(ranks_per_host=4, clock_spread_ns=5 * MS),
}

FAULTY: dict[str, Family] = {
    **LINKS,
    "rank x1.3": _slow(1.3),
    "rank x1.1": _slow(1.1),
    "tensor group x1.3": _tensor_group,
    "host x1.2": _node,
    "stage x1.3": _stage,
    "3 of 4 ranks x1.3": _most,
    "another rank x1.6 each step": _rotating,
    "from step 7 of 10": _in_steps(lambda step: step >= 6, 10),
    "every third step": _in_steps(lambda step: step % 3 == 2, 12),
    "first 6 of 20": _in_steps(lambda step: step < 6, 20),
    "1 of 4 steps x2": _in_few((2,), 4, 2.0),
    "2 of 4 steps x2": _in_few((1, 3), 4, 2.0),
    "1 of 2 steps x4": _in_few((1,), 2, 4.0),
    "1 of 4 steps x2, beside a slow rank": _beside_a_slow_rank,
    "4 steps, each another rank x1.6": _each_another,
    # a window ends with the next step's first kernel, so the step before may be the long one
    "loader in 1 of 4 steps": _on_host("data_loading", lambda _: waits_for_data(10 * MS), only=(4, frozenset({2}))),
    "1 of 5 steps of a host x1.5": _host_in_one_step,
    "garbage collection in 1 of 4 steps": _on_host(
        "garbage_collection",
        lambda _: stops(10 * MS, "python_gc", "gc"),
        reason="in step 5",
        only=(4, frozenset({2})),
    ),
    "one step of 4.6 s": _outlier,
    "dispatch +20 us, host-bound": _dispatch,
    "hidden in the bubble": _bubble,
    "two slow ranks": _two_slow,
    "two kinds": _two_kinds,
    "all x1.5 in some steps": _all_in_some_steps,
    "all but one x1.3": _all_but_one,
    "slow launches and a device x6": _hidden_by_a_device,
    "two ranks, one loader": _loader_of_two,
    "loader of a rank": _on_host("data_loading", lambda s: waits_for_data(s.kernel_ns * 30)),
    "loader of all ranks": _on_host("data_loading", lambda s: waits_for_data(s.kernel_ns * 30), everyone=True),
    "attention x1.5": _slow(1.5, "flash", "flash"),
    "clock 1450 of 1800": _clock,
    "garbage collection": _on_host(
        "garbage_collection", lambda s: stops(s.kernel_ns * 60, "python_gc", "gc"), reason="garbage"
    ),
    "stall without a mark": _on_host("dispatch", lambda s: stops(s.kernel_ns * 60)),
    "compiling": _on_host(
        "compile", lambda s: stops(s.kernel_ns * 60, "compile: forward", "annotation"), reason="compil"
    ),
    "cudaMalloc": _on_host(
        "memory_allocation",
        lambda s: stops(s.kernel_ns * 20, "cudaMalloc", "runtime", times=4),
        "dispatch",
        reason="cudamalloc",
    ),
    "checkpoint": _on_host(
        "checkpoint", lambda s: stops(s.kernel_ns * 60, "checkpoint: save", "annotation"), reason="checkpoint"
    ),
    ".item()": _on_host("synchronisation", lambda _: reads_back(12), "dispatch", reason="aten::item"),
    "copies x20": _on_host("memory", lambda _: kernels(20.0, "Memcpy", "memory")),
    "64 ms hole": _hole,
    "CPU, rank x1.3": _cpu(("computing", kernels(1.3))),
    "CPU, loader": _cpu(("data_loading", waits_for_data(30 * MS))),
    "CPU, outside of operators": _cpu(("dispatch", stops(30 * MS))),
    "output layer": output_layer(slow=False),
    "output layer and a slow rank": output_layer(slow=True),
    "metrics of a rank": metrics(slow=False),
    "metrics of a rank and a slow rank": metrics(slow=True),
    "expert library, rank x1.3": _expert_library(1.3),
}


ON_DISK = 5
"""Which one of six jobs of a family is read from traces, not from rows in memory."""


def jobs(number: int, only: str = "") -> Iterator[tuple[str, Job]]:
    """The family and job of each of `number` jobs: a third of them healthy, the rest spread evenly over the faults.

    Args:
        number: How many.
        only: Only families whose name contains this.
    """
    families = {name: family for name, family in {**HEALTHY, **FAULTY}.items() if only in name}
    healthy = [name for name in families if name in HEALTHY]
    faulty = [name for name in families if name in FAULTY]
    shares = {True: round(number / 3) if faulty else number, False: number}
    shares[False] -= shares[True] if healthy else 0
    for is_healthy, names in ((True, healthy), (False, faulty)):
        turns = ((name, turn) for turn in count() for name in names)
        for name, turn in islice(turns, shares[is_healthy] if names else 0):
            job = families[name](turn)
            job.on_disk |= turn % 6 == ON_DISK and not job.links and not job.on_cpu
            yield name, job
