"""The gRPC service of a proxy, for processes of its node that do not use the Unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import msgspec

from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.link import serve
from stepscope.live.control.proxy import Proxy
from stepscope.live.control.wire import messages, services
from stepscope.live.messages import Hello
from stepscope.live.peers import Peer

_MOST_UNSENT = 1024
"""Lines that wait for a worker that does not read."""


class StreamConnection:
    """The link of a worker over gRPC."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.is_local = False
        self.hello: Hello | None = None
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, line: bytes) -> None:
        """See `link.Connection`."""
        if self.lines.qsize() < _MOST_UNSENT:
            self.lines.put_nowait(line.rstrip(b"\n"))

    def close(self) -> None:
        """See `link.Connection`."""
        self.lines.put_nowait(None)


def serve_node(server: Any, proxy: Proxy, bounds: Bounds = BOUNDS) -> None:
    """Let a gRPC server answer for a proxy."""
    wire = messages()
    open_links = 0

    class Service(services().ProxyServicer):  # type: ignore[misc] # made when it is loaded
        async def Status(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as in the protocol
            return wire.StatusReply(status=msgspec.json.encode(proxy.status()))

        async def Worker(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - as in the protocol
            nonlocal open_links
            if open_links >= bounds.most_workers:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"this node has {open_links} links already")
            connection = StreamConnection()
            open_links += 1
            serving = asyncio.create_task(serve(connection, _lines(requests), proxy, bounds))
            serving.add_done_callback(lambda _task: connection.close())
            try:
                while (line := await connection.lines.get()) is not None:
                    yield wire.Line(line=line)
            finally:
                open_links -= 1
                serving.cancel()
                with suppress(asyncio.CancelledError):
                    await serving

    services().add_ProxyServicer_to_server(Service(), server)


async def _lines(requests: Any) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request.line
