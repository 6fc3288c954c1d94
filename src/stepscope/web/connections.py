"""Connections that stand still are dropped: a client that sends or reads nothing must not hold on to the server.

uvicorn waits for a client for as long as it likes, except between requests. The protocols here are uvicorn's, with
times in a registry that is looked through twice a second.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from stepscope.web.settings import Bounds

LOOKS_EVERY_S = 0.5


@dataclass
class Connection:
    """A connection and since when it has been in its state.

    Args:
        transport: Its two streams.
        protocol: What reads and writes.
        since: When its state began, in seconds of the monotonic clock.
        phase: What is waited for: `head` or `body` of a request, its `answer`, the rest of a `refused` one, or the next
            one (`idle`); `socket` of a page.
        paused: Since when the client has not read enough, or None.
        closing: Since when it is being closed, or None.
    """

    transport: asyncio.Transport
    protocol: asyncio.Protocol
    since: float
    phase: str = "head"
    paused: float | None = None
    closing: float | None = None


@dataclass
class Connections:
    """All connections of a server.

    Args:
        bounds: How many there may be, and how long each may stand still.
    """

    bounds: Bounds
    known: dict[asyncio.Transport, Connection] = field(default_factory=dict)

    def opened(self, transport: asyncio.Transport, protocol: asyncio.Protocol, *, socket: bool) -> None:
        """Note a new connection, or one that became a WebSocket; one too many takes the place of the idlest."""
        now = time.monotonic()
        if (one := self.known.get(transport)) is not None:
            one.protocol, one.since, one.phase = protocol, now, "socket" if socket else one.phase
            return
        self.known[transport] = Connection(transport, protocol, now)
        if len(self.known) > self.bounds.connections:
            idle = [one for one in self.known.values() if one.phase in ("head", "idle")]
            busy = [one for one in self.known.values() if one.phase != "socket"]
            for one in sorted(idle or busy, key=lambda one: one.since)[:1]:
                self._drop(one)

    def closed(self, transport: asyncio.Transport) -> None:
        """Forget a connection."""
        self.known.pop(transport, None)

    def moved(self, transport: asyncio.Transport, phase: str) -> None:
        """Note what a connection waits for now."""
        one = self.known.get(transport)
        if one is not None and one.phase != phase:
            one.phase, one.since = phase, time.monotonic()

    def paused(self, transport: asyncio.Transport, *, is_paused: bool) -> None:
        """Note that a client does not read what is sent to it, or that it does again."""
        if (one := self.known.get(transport)) is not None:
            one.paused = time.monotonic() if is_paused else None

    async def watch(self) -> None:
        """Drop what stands still, until cancelled."""
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            self.look()

    def look(self) -> None:
        """Drop what has stood still for too long."""
        now, bounds = time.monotonic(), self.bounds
        for one in list(self.known.values()):
            if isinstance(one.protocol, GuardedHttp):
                self.moved(one.transport, one.protocol.phase())
            most = {"head": bounds.head_s, "body": bounds.body_s, "refused": bounds.linger_s}.get(one.phase)
            if one.transport.is_closing() and one.closing is None:
                one.closing = now
            if (
                (most is not None and now - one.since > most)
                or (one.paused is not None and now - one.paused > bounds.unread_s)
                or (one.closing is not None and now - one.closing > bounds.unread_s)
            ):
                self._drop(one)

    def drop_all(self) -> None:
        """End all connections at once."""
        for one in list(self.known.values()):
            self._drop(one)

    def _drop(self, one: Connection) -> None:
        self.known.pop(one.transport, None)
        one.transport.abort()


class _Guarded(asyncio.Protocol):
    """What both protocols note: that a connection begins and ends, and whether its client reads."""

    watched: Connections
    transport: asyncio.Transport
    is_socket = False

    def connection_made(self, transport: Any) -> None:
        """See the base class."""
        super().connection_made(transport)
        self.watched.opened(transport, self, socket=self.is_socket)

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base class."""
        self.watched.closed(self.transport)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See the base class."""
        super().pause_writing()
        self.watched.paused(self.transport, is_paused=True)

    def resume_writing(self) -> None:
        """See the base class."""
        super().resume_writing()
        self.watched.paused(self.transport, is_paused=False)


class GuardedHttp(_Guarded, H11Protocol):
    """uvicorn's HTTP protocol, which notes what it waits for."""

    def data_received(self, data: bytes) -> None:
        """See the base class."""
        super().data_received(data)
        self.watched.moved(self.transport, self.phase())

    def phase(self) -> str:
        """What is waited for."""
        if self.transport.get_protocol() is not self:
            return "socket"
        answered = self.cycle is None or self.cycle.response_complete
        if self.conn.their_state is h11.SEND_BODY:
            return "refused" if answered else "body"
        if not answered:
            return "answer"
        return "head" if self.timeout_keep_alive_task is None else "idle"


class GuardedSocket(_Guarded, WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, which notes whether its client reads."""

    is_socket = True


def guarded(connections: Connections) -> tuple[type[GuardedHttp], type[GuardedSocket]]:
    """The protocols of a server, for HTTP and WebSockets, that note their connections in a registry."""
    http = type("GuardedHttp", (GuardedHttp,), {"watched": connections})
    socket = type("GuardedSocket", (GuardedSocket,), {"watched": connections})
    return http, socket
