"""Manager and proxy as servers: where they listen, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepscope.live import places
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.manager import Manager
from stepscope.live.control.node_service import serve_node
from stepscope.live.control.proxy import Proxy
from stepscope.live.control.security import Security
from stepscope.live.control.service import Subscribe, serve_manager
from stepscope.live.control.sockets import PrivateSocket

_GRACE_S = 1.0
"""Calls that are being answered when a server stops get this time."""


class ManagerServer:
    """A manager that listens.

    Args:
        status: Makes the answer of `Status`.
        subscribe: Supplies the events of `Events`.
        host: Address to listen on.
        port: Port; 0 chooses one, which `port` tells after `start`.
        services: Functions that add further services to the gRPC server.
    """

    def __init__(
        self,
        manager: Manager,
        status: Callable[[], bytes],
        subscribe: Subscribe,
        *,
        host: str = places.LOOPBACK,
        port: int = places.MANAGER_PORT,
        security: Security | None = None,
        services: Sequence[Callable[[Any], None]] = (),
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.manager, self.host, self.port = manager, host, port
        self._security = security or Security()
        self._status, self._subscribe = status, subscribe
        self._services, self._bounds = services, bounds

    async def start(self) -> None:
        """Begin to listen: on the port, and for this user also on a Unix socket.

        Raises:
            StepscopeError: If strangers could get in, or it cannot listen.
        """
        self._security.check_server(self.host)
        self._server = self._security.server(self._bounds)
        serve_manager(
            self._server,
            self.manager,
            status=self._status,
            subscribe=self._subscribe,
            bounds=self._bounds,
        )
        for add in self._services:
            add(self._server)
        self.port = self._security.add_port(self._server, self.host, self.port)
        self._place = PrivateSocket(places.manager_socket_path(self.port))
        self._place.claim()
        self._server.add_insecure_port(self.local_target)
        await self.manager.start()
        await self._server.start()

    @property
    def local_target(self) -> str:
        """Where this user reaches it on this node, without a token."""
        return f"unix:{self._place.path}"

    async def stop(self) -> None:
        """Stop listening."""
        await self.manager.stop()
        await self._server.stop(_GRACE_S)
        self._place.release()


class ProxyServer:
    """A proxy that listens: for workers on the Unix socket, and on a port of the node for others.

    Args:
        port: Port; 0 chooses one; None for the Unix socket alone.
        option: Of the command, which chooses another port; for the message if it is in use.
    """

    def __init__(
        self,
        proxy: Proxy,
        *,
        host: str = places.LOOPBACK,
        port: int | None = places.PROXY_PORT,
        security: Security | None = None,
        bounds: Bounds = BOUNDS,
        option: str = "--port",
    ) -> None:
        self.proxy, self.host, self.port = proxy, host, port
        self._security, self._bounds, self._option = security or Security(), bounds, option
        self._server: Any = None

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            StepscopeError: If strangers could get in, or it cannot listen.
        """
        if self.port is not None:
            self._security.check_server(self.host)
            self._server = self._security.server(self._bounds)
            serve_node(self._server, self.proxy, self._bounds)
            self.port = self._security.add_port(self._server, self.host, self.port, self._option)
        await self.proxy.start()
        if self._server is not None:
            await self._server.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self.proxy.stop()
        if self._server is not None:
            await self._server.stop(_GRACE_S)
