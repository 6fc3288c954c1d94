"""How long calls between ranks take to transfer, by group or pair, from the digests of all members.

A member that comes early waits in the call; the last to come only transfers. So the shortest of the members' times is
the transfer, whoever is late. Calls can be compared with those of the same operation and size, of as many members on as
many hosts, and for transfers between two ranks of the same direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, log2
from typing import NamedTuple

from stepscope.live.detect.layout import Layout
from stepscope.live.detect.own_times import MOST_NS
from stepscope.live.messages import Calls, Digest

SENDS = ("send", "isend", "batch_send")
RECEIVES = ("recv", "irecv", "batch_recv")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
MEMBERS_RATIO = 0.8
"""Share of a group whose calls must be known."""
MOST_LINKS = 65_536


class Link(NamedTuple):
    """What is compared: calls of an operation in a group, or from one rank to another."""

    operation: str
    group: str
    source: int
    target: int
    size: int
    """Logarithm of the size of a call, in steps of a factor of the square root of 2."""


class Transfer(NamedTuple):
    """The calls of a link in a round."""

    ns: float
    """Of one call."""
    calls: float
    """How many in a step."""
    members: tuple[int, ...]


def transfers(digests: Mapping[int, tuple[Digest, int]], layout: Layout) -> dict[Link, Transfer]:
    """The transfers of a round.

    Args:
        digests: Of each rank, with the number of steps in it.
        layout: Of the job; learns which groups send.
    """
    seen: dict[Link, list[tuple[int, float, float]]] = {}
    for rank, (digest, steps) in digests.items():
        for call in digest.calls:
            link, ns = _link(rank, call), _ns(call)
            if link is None or ns is None or len(seen) >= MOST_LINKS:
                continue
            if link.source >= 0:
                layout.sends_in(call.group)
            seen.setdefault(link, []).append((rank, ns, call.count / steps))
    found = {}
    for link, ends in seen.items():
        members = tuple(sorted(rank for rank, _, _ in ends))
        wanted = 2 if link.source >= 0 else max(2, MEMBERS_RATIO * len(layout.members(link.group)))
        if len(members) >= wanted:
            found[link] = Transfer(min(ns for _, ns, _ in ends), ends[0][2], members)
    return found


def alike(link: Link, transfer: Transfer, layout: Layout) -> tuple[object, ...]:
    """What identifies the links that one can be compared with."""
    hosts = len({layout.hosts.get(rank, "") for rank in transfer.members})
    direction = (link.target > link.source) - (link.target < link.source)
    return link.operation, link.size, len(transfer.members), hosts, direction


def value(transfer: Transfer) -> float:
    """What is compared."""
    return log(transfer.ns)


def _link(rank: int, call: Calls) -> Link | None:
    if call.count <= 0 or not 0 <= call.time_ns < MOST_NS:
        return None
    size = 0 if not call.size_bytes or call.size_bytes < 0 else round(2 * log2(max(1.0, call.size_bytes / call.count)))
    operation = call.operation
    if call.peer is not None:
        if operation in SENDS:
            return Link("send", call.group, rank, call.peer, size)
        return Link("send", call.group, call.peer, rank, size) if operation in RECEIVES else None
    if not operation.startswith(COLLECTIVES):
        return None
    return Link(operation, call.group, -1, -1, size)


def _ns(call: Calls) -> float | None:
    """The time of one call: of transfers the shortest, as their ends wait for each other in turn."""
    time_ns, shortest_ns = call.time_ns, call.shortest_ns
    if call.device_ns is not None:
        time_ns, shortest_ns = call.device_ns, call.shortest_device_ns or 0
    elif call.launched:
        return None
    found = time_ns / call.count
    if call.peer is not None and 0 < shortest_ns < found:
        found = shortest_ns
    return found if 0 < found < MOST_NS else None
