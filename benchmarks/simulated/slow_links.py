"""Jobs with slow links, interfaces and groups, with and without a record of links."""

from __future__ import annotations

from simulated.chosen import Family, shape_of, victim_of
from simulated.faults import Fault, kernels
from simulated.operations import SlowPath
from simulated.truth import Job


def _nic(number: int) -> Job:
    ranks, hosts = ((32, 8), (4, 2), (16, 4))[number % 3]
    _, shape = shape_of(number, "dp4", ranks=ranks, ranks_per_host=hosts, layers=2, layer_bytes=60_000_000, steps=6)
    rank = victim_of(shape, number)
    return Job(f"dp{ranks} on hosts", shape, [Fault("link", "nic", (rank,), path=SlowPath(3.0, (rank,)))], links=True)


def _nic_of_host(number: int) -> Job:
    _, shape = shape_of(number, "dp16 on 2 hosts", ranks=24, layers=2, layer_bytes=40_000_000, steps=5)
    ranks = tuple(shape.host_ranks(number % 3))
    return Job("dp24 on 3 hosts", shape, [Fault("link", "host", ranks, path=SlowPath(3.0, ranks))], links=True)


def _between_hosts(number: int) -> Job:
    """All links between two of four hosts, e.g. by one cable of the switch."""
    _, shape = shape_of(number, "dp4", ranks=16, ranks_per_host=4, layers=2, layer_bytes=60_000_000, steps=5)
    one, other = ((0, 1), (0, 2), (1, 3))[number % 3]
    ends, others = tuple(shape.host_ranks(one)), tuple(shape.host_ranks(other))
    path = SlowPath(3.0, ends, others=others)
    return Job("dp16 on 4 hosts", shape, [Fault("link", "hosts", ends + others, path=path)], links=True)


def _link(number: int) -> Job:
    name, shape = shape_of(number, "dp8", "tp4", layer_bytes=60_000_000)
    one = victim_of(shape, number)
    other = shape.tensor_ranks(one)[0] if shape.tensor > 1 else (one + 1) % shape.ranks
    other = other if other != one else one + 1
    ends = (min(one, other), max(one, other))
    return Job(name, shape, [Fault("link", "link", ends, path=SlowPath(3.0, ends))], links=True)


def _link_in_steps(number: int) -> Job:
    """A link is slow in some steps only."""
    name, shape = shape_of(number, "dp8", "zero8", layer_bytes=60_000_000, steps=(6, 10, 12)[number % 3])
    one = victim_of(shape, number)
    ends = (min(one, (one + 1) % shape.ranks), max(one, (one + 1) % shape.ranks))
    steps = (frozenset({2, 4}), frozenset(range(5, 10)), frozenset({1, 5, 9}))[number % 3]
    path = SlowPath(3.0, ends, steps)
    return Job(name, shape, [Fault("link", "link", ends, path=path, steps=steps)], links=True)


def _link_of_stages(number: int) -> Job:
    """The link between two stages of a pipeline, which only transfers use."""
    _, shape = shape_of(number, "pp4")
    one = shape.rank_at(number % 3, number % shape.copies, 0)
    ends = (one, one + shape.copies)
    return Job("pp4", shape, [Fault("link", "link", ends, path=SlowPath((20.0, 40.0)[number % 2], ends))], links=True)


def _link_and_rank(number: int) -> Job:
    """A slow link and a slow rank, in the same group or in others that wait for each other."""
    name, shape = shape_of(number, "tp4", "dp8", layer_bytes=60_000_000)
    ends = (shape.ranks - 2, shape.ranks - 1)
    rank = (1, shape.ranks - 1)[number // 2 % 2]
    faults = [
        Fault("computing", "rank", (rank,), kernels(1.3)),
        Fault("link", "link", ends, path=SlowPath(3.0, ends)),
    ]
    return Job(name, shape, faults, links=True)


def _two_links(number: int) -> Job:
    """Two slow links, of one group or of two."""
    name, shape = shape_of(number, "tp4", "dp8", layer_bytes=60_000_000)
    pairs = ((0, 1), (shape.ranks - 2, shape.ranks - 1))
    paths = [SlowPath(factor, ends) for factor, ends in zip((3.0, 2.5), pairs, strict=True)]
    return Job(name, shape, [Fault("link", "link", path.ranks, path=path) for path in paths], links=True)


def _group(number: int) -> Job:
    """A slow link inside one tensor-parallel group; links are not recorded."""
    name, shape = shape_of(number, "tp4", "tp2", layer_bytes=80_000_000)
    ranks = tuple(shape.tensor_ranks(victim_of(shape, number)))
    return Job(name, shape, [Fault("group", "tensor group", ranks, path=SlowPath(2.5, ranks[:2]), also=("link",))])


def _group_in_steps(number: int) -> Job:
    """A link inside one group is slow in some steps; links are not recorded."""
    name, shape = shape_of(number, "tp4", "dp8", layer_bytes=80_000_000, steps=(8, 10)[number % 2])
    ranks = tuple(shape.tensor_ranks(5)) if shape.tensor > 1 else tuple(range(shape.ranks))
    steps = frozenset({2, 5})
    path = SlowPath(3.0, ranks[:2], steps)
    return Job(name, shape, [Fault("group", "group", ranks, path=path, steps=steps, also=("link",))])


def _transfers(number: int) -> Job:
    """A slow link between two stages; links are not recorded."""
    name, shape = shape_of(number, "pp4", "tp2pp2")
    one = shape.rank_at(0, number % shape.copies, 0)
    ranks = (one, one + shape.copies * shape.tensor)
    return Job(name, shape, [Fault("group", "link", ranks, path=SlowPath(30.0, ranks), also=("link",))])


def _group_and_rank(number: int) -> Job:
    """A slow link inside one group, a slow rank in another one; links are not recorded."""
    name, shape = shape_of(number, "tp4", "tp2", layer_bytes=80_000_000)
    ranks = tuple(shape.tensor_ranks(shape.ranks - 1))
    faults = [
        Fault("computing", "rank", (1,), kernels(1.3)),
        Fault("group", "tensor group", ranks, path=SlowPath(2.5, ranks[:2]), also=("link",)),
    ]
    return Job(name, shape, faults)


LINKS: dict[str, Family] = {
    "slow NIC": _nic,
    "slow NIC of a host": _nic_of_host,
    "slow links between two hosts": _between_hosts,
    "slow link": _link,
    "slow link in some steps": _link_in_steps,
    "slow link between stages": _link_of_stages,
    "slow link and slow rank": _link_and_rank,
    "two slow links": _two_links,
    "slow group, no links": _group,
    "slow group in some steps, no links": _group_in_steps,
    "slow transfers, no links": _transfers,
    "slow group and slow rank, no links": _group_and_rank,
}
