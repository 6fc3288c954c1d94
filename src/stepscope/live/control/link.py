"""The proxy's end of the links of workers: lines of JSON both ways, over a Unix socket or gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

from stepscope.live.control.bounds import Bounds
from stepscope.live.control.rates import Allowance, Once
from stepscope.live.control.sockets import PrivateSocket
from stepscope.live.messages import (
    MOST_LINE_BYTES,
    MOST_TEXT,
    Applied,
    BadMessage,
    Captured,
    Checked,
    Digests,
    FromWorker,
    Hello,
    Pulse,
    Refused,
    from_worker,
    line_of,
)
from stepscope.live.peers import Peer, is_friend, peer_of

log = logging.getLogger("stepscope")

MOST_RANK = 2**24
"""Ranks above are refused: no job is that large."""
_said = Once()
_MOST_UNSENT = 4 * 1024 * 1024
"""Bytes that wait for a worker that does not read; its link is then closed."""


class NotAccepted(Exception):
    """A worker may not take part, and why."""


class Connection(Protocol):
    """The link of one worker.

    Args:
        peer: The process at the other end as the kernel knows it; None if it is unknown.
        is_local: Whether the kernel vouches for the peer.
        hello: How the worker has registered; None until it has.
    """

    peer: Peer | None
    is_local: bool
    hello: Hello | None

    def send(self, line: bytes) -> None:
        """Send a line, which waits if the worker does not read."""

    def close(self) -> None:
        """End the link."""


class Hub(Protocol):
    """What the links of a node are for."""

    def joined(self, connection: Connection, hello: Hello) -> None:
        """A worker registers, or has changed.

        Raises:
            NotAccepted: If it may not.
        """

    def said(self, connection: Connection, message: FromWorker, line: bytes) -> None:
        """A registered worker has sent something else."""

    def gone(self, connection: Connection) -> None:
        """The link of a registered worker has ended."""


def refuse(connection: Connection, reason: str) -> None:
    """Say why, and end the link."""
    connection.send(line_of(Refused(reason)))
    connection.close()


def wrong_job(hello: Hello, job: str) -> NotAccepted:
    """A worker belongs to another job than manager and proxy."""
    return NotAccepted(
        f"rank {hello.rank} (process {hello.pid}) belongs to job {hello.job}, but manager and proxy serve job {job}. "
        "If that job has ended, stop the manager and start it again; else start another one on other ports: stepscope "
        f"live manager --job {hello.job} --port N --proxy-port M"
    )


async def serve(connection: Connection, lines: AsyncIterator[bytes], hub: Hub, bounds: Bounds) -> None:
    """Serve one link until it ends. Lines above the rate wait, so that a flood only slows its sender down."""
    allowance = Allowance(bounds)
    try:
        line = await asyncio.wait_for(anext(lines), bounds.hello_within_s)
        while True:
            message = checked(from_worker(line), connection.hello)
            if isinstance(message, Hello):
                hub.joined(connection, message)
                connection.hello = message
            elif connection.hello is not None:
                own = of_rank(message, connection.hello.rank)
                if own is not None:
                    hub.said(connection, own, line if own is message else line_of(own).rstrip(b"\n"))
            await allowance.wait(1, len(line))
            line = await anext(lines)
    except StopAsyncIteration:
        pass
    except asyncio.TimeoutError:
        refuse(connection, f"no hello came within {bounds.hello_within_s:g} s")
    except (NotAccepted, BadMessage) as error:
        if _said.is_news(str(error)):
            log.warning("a worker was refused: %s", error)
        refuse(connection, str(error))
    finally:
        if connection.hello is not None:
            hub.gone(connection)


def checked(message: FromWorker, hello: Hello | None) -> FromWorker:
    """A message that this worker may send.

    Raises:
        BadMessage: If it comes before hello, or holds a text or number out of bounds.
    """
    if isinstance(message, Hello):
        texts = [message.job, message.host, message.framework, message.device, *message.switches]
        texts += [text for group in message.groups for text in (group.key, group.name)]
        if not 0 <= message.rank < MOST_RANK:
            raise BadMessage(f"{message.rank} is not a rank")
        if not message.job:
            raise BadMessage("hello names no job")
        _check_texts(texts)
        return message
    if hello is None:
        raise BadMessage("the first message must be hello")
    _check_texts(_texts_of(message))
    return message


def of_rank(message: FromWorker, rank: int) -> FromWorker | None:
    """The part of a message that is about a rank: a worker that gets its rank late has said some things before under
    another one."""
    if not isinstance(message, Digests):
        return message if message.rank == rank else None
    own = [one for one in message.digests if one.rank == rank]
    if len(own) == len(message.digests):
        return message
    return Digests(own, message.lost + len(message.digests) - len(own))


def _texts_of(message: FromWorker) -> list[str]:
    if isinstance(message, Digests):
        return [text for one in message.digests for calls in one.calls for text in (calls.operation, calls.group)]
    if isinstance(message, Pulse):
        return [text for one in message.inside for text in (one.mark, one.operation, one.group)]
    if isinstance(message, Applied):
        return message.switches
    if isinstance(message, (Captured, Checked)):
        return [message.capture if isinstance(message, Captured) else message.check]
    return []


def _check_texts(texts: list[str]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > MOST_TEXT:
        raise BadMessage(f"a name has {longest:,} characters; at most {MOST_TEXT:,} are read")


class SocketConnection:
    """The link of a worker over the Unix socket."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.hello: Hello | None = None
        self.is_local = True
        self.peer = peer_of(writer.get_extra_info("socket"))
        self._writer = writer

    def send(self, line: bytes) -> None:
        """See `Connection`."""
        if self._writer.is_closing():
            return
        self._writer.write(line)
        if self._writer.transport.get_write_buffer_size() > _MOST_UNSENT:
            log.warning("a worker does not read what it is sent; its link is closed")
            self._writer.transport.abort()

    def close(self) -> None:
        """See `Connection`."""
        self._writer.close()


class LinkServer:
    """Accepts workers on the Unix socket of the node."""

    def __init__(self, place: PrivateSocket, hub: Hub, bounds: Bounds) -> None:
        self._place, self._hub, self._bounds = place, hub, bounds
        self._links: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to accept.

        Raises:
            StepscopeError: If another process serves the node, or the socket cannot be made.
        """
        self._place.claim()
        self._server = await asyncio.start_unix_server(
            self._accept, sock=self._place.listening(), limit=MOST_LINE_BYTES
        )

    async def stop(self) -> None:
        """Close all links."""
        self._server.close()
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        self._place.release()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = SocketConnection(writer)
        self._links.add(task)
        try:
            if not is_friend(connection.peer):
                log.warning("a process of another user was refused: %s", connection.peer)
                refuse(connection, "this proxy serves another user")
            elif len(self._links) > self._bounds.most_workers:
                refuse(connection, f"this node has {self._bounds.most_workers} links already")
            else:
                await serve(connection, _lines(reader), self._hub, self._bounds)
        except asyncio.CancelledError:  # by `stop`; asyncio of Python 3.11 would print a traceback for each link
            pass
        finally:
            self._links.discard(task)
            with suppress(OSError):
                writer.close()


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines; what a worker that was killed has begun is left out."""
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise BadMessage(f"a line has more than {MOST_LINE_BYTES:,} bytes") from error
        except OSError:
            return
        if not line.endswith(b"\n"):
            return
        yield line.rstrip(b"\n")
