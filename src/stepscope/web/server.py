"""uvicorn as this application needs it: bounded, quiet, and ending at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from stepscope.web.connections import Connections, guarded
from stepscope.web.settings import Settings

END_WITHIN_S = 1
"""Seconds that answers in progress may take after Ctrl-C."""


class Server(uvicorn.Server):
    """A server of one application.

    Args:
        app: What answers.
        settings: Bounds of clients.
        begin: Called as soon as clients are answered.
    """

    def __init__(self, app: Any, settings: Settings, begin: Callable[[], None] = lambda: None) -> None:
        self.open = Connections(settings.bounds)
        super().__init__(_config(app, settings, self.open))
        self._begin = begin
        self._watch: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See the base class."""
        await super().startup(sockets)
        self._watch = asyncio.create_task(self.open.watch())
        self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See the base class, which would wait for clients to close their connections."""
        if self._watch is not None:
            self._watch.cancel()
        self.open.drop_all()
        await super().shutdown(sockets)


def _config(app: Any, settings: Settings, connections: Connections) -> uvicorn.Config:
    bounds = settings.bounds
    http, sockets = guarded(connections)
    return uvicorn.Config(
        app,
        http=http,
        ws=sockets,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whoever sends them could say anything
        server_header=False,
        h11_max_incomplete_event_size=bounds.head_bytes,
        ws_max_size=bounds.message_bytes,
        timeout_keep_alive=bounds.idle_s,
        timeout_graceful_shutdown=END_WITHIN_S,
    )
