"""What a rank's host thread does, one operation after the other, and the network that its calls use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

What = Literal["host", "kernel", "call", "record", "wait", "callback", "synchronise"]


@dataclass(slots=True)
class Operation:
    """One thing that a host thread does: work of its own, or a call that gives work to a stream; times in ns."""

    what: What
    name: str
    ns: int = 0
    """Length on the host (`host`) or stream (`kernel`, `callback`); of a `call`, what its member adds to its end."""
    gap_ns: int = 0
    """Python before it."""
    launch_ns: int = 4000
    """Length of the host's call."""
    stream: int = 7
    kind: str = "compute"
    """`compute` or `memory`; of host work, the category of its range, empty for none."""
    operator: str = ""
    """Framework operator around the call."""
    group: str = ""
    operation: str = ""
    size_bytes: int = 0
    peer: int | None = None
    event: int = 0
    """Number of the event that is recorded or waited for."""


@dataclass(frozen=True)
class SlowPath:
    """Links that are slower than others of their kind.

    Args:
        factor: How many times as long a transfer takes.
        ranks: One rank: all its links to other hosts (its NIC). Two: the link between them. More: the links of these
            to other hosts.
        steps: In which steps; None for all.
        others: If there are some, only the links between these ranks and the first ones.
    """

    factor: float
    ranks: tuple[int, ...]
    steps: frozenset[int] | None = None
    others: tuple[int, ...] = ()

    def strikes(self, one: int, other: int, *, inside: bool) -> bool:
        """Whether the link between two ranks is slow, in the same host or not."""
        if self.others:
            return (one in self.ranks and other in self.others) or (other in self.ranks and one in self.others)
        is_nic = len(self.ranks) != 2 and not inside and (one in self.ranks or other in self.ranks)
        return is_nic or set(self.ranks) == {one, other}


TRAFFIC = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0, "broadcast": 1.0}
"""Bytes that a member sends to each other one, over its payload divided by the members."""


@dataclass
class Network:
    """A mesh of links in each host, and between hosts the NICs of the ranks, each shared by its links."""

    ranks_per_host: int = 8
    inside_bytes_per_s: float = 25e9
    nic_bytes_per_s: float = 25e9
    latency_ns: int = 12_000
    slow: Sequence[SlowPath] = ()
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def host_of(self, rank: int) -> int:
        return rank // self.ranks_per_host

    def per_link_bytes(self, operation: str, size_bytes: int, members: int) -> float:
        """What one member sends to another one."""
        return TRAFFIC.get(operation, members) * size_bytes / members

    def rate(self, one: int, other: int, members: Sequence[int], step: int) -> float:
        """Bytes per second between two members while all talk to all."""
        is_inside = self.host_of(one) == self.host_of(other)
        rate = self.inside_bytes_per_s
        if not is_inside:
            ends = (sum(self.host_of(m) != self.host_of(end) for m in members) for end in (one, other))
            rate = self.nic_bytes_per_s / max(ends)
        for path in self.slow:
            if path.steps is not None and step not in path.steps:
                continue
            if path.strikes(one, other, inside=is_inside):
                rate /= path.factor
        return rate

    def transmit_ns(self, operation: str, group: str, size_bytes: int, step: int) -> int:
        """How long a call needs when all members are there: as long as its slowest link."""
        changes = tuple(path.steps is None or step in path.steps for path in self.slow)
        key = (operation, group, size_bytes, changes)
        if key not in self._known:
            members = self.groups[group]
            slowest = min((self.rate(a, b, members, step) for a, b in combinations(members, 2)), default=1e12)
            length = self.per_link_bytes(operation, size_bytes, len(members)) / slowest * 1e9
            self._known[key] = round(self.latency_ns + length)
        return self._known[key]
