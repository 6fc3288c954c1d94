"""Latency and throughput between pairs of ranks, over TCP connections of our own.

They are made outside of torch.distributed, so they can neither disturb the order of its collectives nor wait for
ranks that do not take part; a new process group would need all ranks, or several hundred MB of device memory. So they
measure the network between hosts (that of the rendezvous, which gloo and NCCL's sockets use as well unless told
otherwise) and the hosts' own load; not NVLink, InfiniBand or RoCE verbs, and no device.

Ranks find one another through the store of the process group, by a connection of their own. A connection counts only
with the token that the listening rank has put there.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter_ns
from typing import Any, NamedTuple

from stepscope.errors import StepscopeError

MOST_PEERS = 8
"""Ranks of one check; pairs are measured one after the other."""
LIMIT_S = 3.0
"""Training stands still for at most this time."""
PINGS = 20
SENT_BYTES = 4 << 20
"""Long enough to fill the windows of TCP, short enough for a slow link: 34 ms at 1 Gbit/s."""
_PIECE = bytes(1 << 16)
_HEAD = struct.Struct("!16si")
_PAUSE_S = 0.05


class Link(NamedTuple):
    """What was measured from a rank to a peer: the time to send `SENT_BYTES`, and the shortest round trip, ns."""

    peer: int
    sent_ns: int
    trip_ns: int

    def as_results(self) -> dict[str, int]:
        """As results of a check."""
        return {f"link_{self.peer}_ns": self.sent_ns, f"link_{self.peer}_latency_ns": self.trip_ns}


def links_in(results: Mapping[str, int]) -> list[Link]:
    """The links among the results of a check."""
    peers = (int(found[1]) for name in results if (found := re.fullmatch(r"link_(\d+)_ns", name)))
    return [Link(peer, results[f"link_{peer}_ns"], results.get(f"link_{peer}_latency_ns", 0)) for peer in peers]


class CannotMeasure(StepscopeError):
    """A check cannot be made; the text is the reason."""


class Links:
    """Connections of this rank to the other ranks of a check.

    Args:
        check: Identifies the check.
        rank: This rank.
        peers: The ranks that take part; this one may be among them.

    Raises:
        CannotMeasure: If there is no process group, or the peers are not ranks of it.
    """

    def __init__(self, check: str, rank: int, peers: list[int]) -> None:
        self._rank = rank
        self._peers = sorted({*peers} - {rank})
        if not self._peers or len(self._peers) >= MOST_PEERS:
            raise CannotMeasure(f"a link check takes 2 to {MOST_PEERS} ranks, not {len(self._peers) + 1}")
        self._store, host = _store(f"stepscope/check/{check}", [*self._peers, rank])
        self._token = secrets.token_bytes(16)
        self._sockets: dict[int, socket.socket] = {}
        self._listener = socket.create_server((_address_towards(host), 0), backlog=MOST_PEERS)

    def connect(self, patience_s: float, goes_on: Callable[[], bool]) -> None:
        """Connect to all peers, as long as the step has not come.

        Raises:
            CannotMeasure: If a peer does not answer in time.
        """
        address, port = self._listener.getsockname()[:2]
        self._store.set(str(self._rank), f"{address} {port} {self._token.hex()}")
        end = time.monotonic() + patience_s
        self._listener.settimeout(_PAUSE_S)
        while len(self._sockets) < len(self._peers) and goes_on():
            if time.monotonic() > end:
                missing = sorted({*self._peers} - self._sockets.keys())
                raise CannotMeasure(f"rank {missing[0]} did not connect for the link check")
            for peer in self._peers:
                if peer > self._rank and peer not in self._sockets and self._store.check([str(peer)]):
                    self._sockets[peer] = self._call(peer)
            self._accept()

    def measure(self) -> dict[str, int]:
        """Times of this rank as the sender, by peer: `link_<peer>_ns` to send 4 MiB until they are acknowledged,
        `link_<peer>_latency_ns`, the shortest round trip. To be called by all ranks between the same two steps.

        Raises:
            CannotMeasure: If a peer is missing or does not answer in time.
        """
        found: dict[str, int] = {}
        end = time.monotonic() + LIMIT_S
        sockets = dict(self._sockets)
        if missing := sorted({*self._peers} - sockets.keys()):
            raise CannotMeasure(f"rank {missing[0]} was not ready for the link check")
        for peer in self._peers:  # all ranks go through the pairs in one order, so none waits for another for ever
            try:
                found |= _measured(sockets[peer], peer, first=self._rank < peer, end=end)
            except (OSError, EOFError) as error:
                raise CannotMeasure(f"the link to rank {peer} failed ({error or 'closed by the peer'})") from error
        return found

    def close(self) -> None:
        """Close all connections; peers that wait for this rank learn it at once."""
        self._listener.close()
        for connection in self._sockets.values():
            connection.close()

    def _call(self, peer: int) -> socket.socket:
        address, port, token = bytes(self._store.get(str(peer))).decode().split()
        connection = socket.create_connection((address, int(port)), timeout=LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(_HEAD.pack(bytes.fromhex(token), self._rank))
        return connection

    def _accept(self) -> None:
        with suppress(OSError, EOFError):
            connection, _ = self._listener.accept()
            try:
                connection.settimeout(LIMIT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                token, peer = _HEAD.unpack(_read(connection, _HEAD.size))
                if not hmac.compare_digest(token, self._token) or peer not in self._peers or peer in self._sockets:
                    raise OSError("a stranger")
            except BaseException:
                connection.close()
                raise
            self._sockets[peer] = connection


def _measured(connection: socket.socket, peer: int, *, first: bool, end: float) -> dict[str, int]:
    _limit(connection, end)
    _meet(connection)  # the time until both are here counts for neither
    if not first:
        _answer(connection, end)
    sent_ns, trip_ns = _send(connection, end)
    if first:
        _answer(connection, end)
    return Link(peer, sent_ns, trip_ns).as_results()


def _send(connection: socket.socket, end: float) -> tuple[int, int]:
    """Time to send the payload until it is acknowledged, and the shortest round trip, in ns."""
    trips = []
    for _ in range(PINGS):
        _limit(connection, end)
        began = perf_counter_ns()
        connection.sendall(b".")
        _read(connection, 1)
        trips.append(perf_counter_ns() - began)
    began = perf_counter_ns()
    for _ in range(SENT_BYTES // len(_PIECE)):
        _limit(connection, end)
        connection.sendall(_PIECE)
    _read(connection, 1)
    return perf_counter_ns() - began, min(trips)


def _answer(connection: socket.socket, end: float) -> None:
    """The other side of `_send`."""
    for _ in range(PINGS):
        _limit(connection, end)
        _read(connection, 1)
        connection.sendall(b".")
    left = SENT_BYTES
    while left:
        _limit(connection, end)
        left -= len(_some(connection, left))
    connection.sendall(b".")


def _meet(connection: socket.socket) -> None:
    """Both ends send a byte and wait for that of the other."""
    connection.sendall(b".")
    _read(connection, 1)


def _read(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    data = b""
    while len(data) < size:
        data += _some(connection, size - len(data))
    return data


def _some(connection: socket.socket, most: int) -> bytes:
    if not (piece := connection.recv(min(most, len(_PIECE)))):
        raise EOFError
    return piece


def _limit(connection: socket.socket, end: float) -> None:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"no answer within {LIMIT_S:g} s")
    connection.settimeout(left)


def _store(prefix: str, ranks: list[int]) -> tuple[Any, str]:
    """The process group's store by a connection of our own, and the host where it is."""
    from stepscope.record.torch.clock import own_connection  # noqa: PLC0415 - imports its framework
    from stepscope.record.torch.identity import joined  # noqa: PLC0415

    distributed = joined()
    if distributed is None:
        raise CannotMeasure("there is no process group, so there are no links")
    if any(not 0 <= rank < distributed.get_world_size() for rank in ranks):
        raise CannotMeasure(f"ranks of this job are 0 to {distributed.get_world_size() - 1}")
    store = own_connection(distributed.distributed_c10d._get_default_store())
    if not isinstance(store, distributed.TCPStore):
        raise CannotMeasure("ranks can only find one another through a TCPStore, and this job has another one")
    return distributed.PrefixStore(prefix, store), store.host


def _address_towards(host: str) -> str:
    """This host's address on the network of the rendezvous."""
    family = socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((socket.getaddrinfo(host, 9, family, socket.SOCK_DGRAM)[0][4][0], 9))  # sends nothing
        return str(probe.getsockname()[0])
