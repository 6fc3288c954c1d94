"""Listening, answering, and ending: the server of `stepscope serve`."""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import StepscopeError
from stepscope.web.settings import ANY_ADDRESS, EXPOSED, Settings

if TYPE_CHECKING:
    from stepscope.web.signing_in import Door

INSTALL = "the web pages need NiceGUI and Plotly. Install them: pip install 'stepscope[web]'"
WAITING = 1024
"""Connections that the system keeps until they are accepted."""

SWITCH_S = 0.0005
"""How long a thread that computes keeps others waiting, in seconds. A page is built in many short turns, and Python's
own 5 ms would pass before each of them."""

LOADS_AFTER_S = 1.0
"""Seconds after the start until what pages need is loaded, unless one was asked for: the first page comes before."""

CLIENTS = ("aiohttp", "requests", "websocket")
"""HTTP clients that the Socket.IO library loads for its client, which no server needs: a third of the time to start."""


class Listener:
    """A socket that clients can connect to; made before anything is loaded, so that a port in use shows at once.

    Args:
        settings: Where to listen.

    Raises:
        StepscopeError: If the address or the port cannot be used, or others can reach it and there is no token.
    """

    def __init__(self, settings: Settings) -> None:
        self.socket = _bound(settings)
        self.settings = replace(settings, port=int(self.socket.getsockname()[1]))
        if self.is_exposed and settings.token is None:  # what `localhost` means is up to the machine
            self.close()
            raise StepscopeError(f"--host {settings.host}: {EXPOSED}")

    @property
    def url(self) -> str:
        """Address of the first page."""
        return f"http://{_in_url(self.settings.host)}:{self.settings.port}/"

    @property
    def is_exposed(self) -> bool:
        """Whether other machines may reach it."""
        address = self.socket.getsockname()[0]
        return not (address.startswith("127.") or address == "::1")

    def close(self) -> None:
        """Free the port."""
        self.socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(listener: Listener, ready: Callable[[Door], None] = lambda _: None) -> None:
    """Answer until the process is interrupted.

    Args:
        listener: Where clients connect.
        ready: Called as soon as they are answered.

    Raises:
        StepscopeError: If a package that the pages need is missing.
        KeyboardInterrupt: On Ctrl-C, after everything is closed.
    """
    _quiet_surroundings()
    try:
        with _without(*CLIENTS):
            import nicegui  # noqa: F401

        from stepscope.web.app import make_app  # noqa: PLC0415
        from stepscope.web.asking import Asking  # noqa: PLC0415
        from stepscope.web.catalogue import Catalogue  # noqa: PLC0415
        from stepscope.web.logs import report_failures  # noqa: PLC0415
        from stepscope.web.server import Server  # noqa: PLC0415
        from stepscope.web.signing_in import Door  # noqa: PLC0415
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "stepscope":
            raise
        raise StepscopeError(f"{INSTALL} ({error})") from error
    settings = listener.settings
    report_failures(debug=settings.debug)
    catalogue = Catalogue(settings.roots, use_store=settings.use_store)
    door = Door(settings.token, settings.port, settings.bounds)
    app = make_app(settings, catalogue, Asking(catalogue), door)

    def begin() -> None:
        sys.setswitchinterval(SWITCH_S)
        ready(door)
        catalogue.start()
        loading = threading.Timer(LOADS_AFTER_S, _load_pages)
        loading.daemon = True
        loading.start()

    Server(app, settings, begin).run(sockets=[listener.socket])


def _load_pages() -> None:
    """Load what pages need, and spare all that is loaded, which stays, from being looked through for garbage."""
    from stepscope.web.ui.site_map import site_map  # noqa: PLC0415

    site_map()
    gc.freeze()


def _quiet_surroundings() -> None:
    """Leave what variables for other programs would have the libraries do: ask other servers, and tell them things."""
    for name in ("NICEGUI_REDIS_URL", "NICEGUI_SCREEN_TEST_PORT", "WEB_CONCURRENCY"):
        os.environ.pop(name, None)
    os.environ.update(
        OTEL_SDK_DISABLED="true",
        FASTAPI_OTEL_AUTO_CONFIGURE="false",
        # nothing is stored, least of all where one happens to be
        NICEGUI_STORAGE_PATH=str(Path(os.devnull) / "nicegui"),
    )


@contextmanager
def _without(*modules: str) -> Iterator[None]:
    """Keep optional modules from being loaded for a while."""
    hidden = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type] # None: importing it fails
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _bound(settings: Settings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StepscopeError(
            f"--host {host}: this is not an address of this machine ({getattr(error, 'strerror', error)}). "
            "Give 127.0.0.1, or 0.0.0.0 for all addresses"
        ) from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name != "nt":  # there, the option would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with suppress(OSError):  # all addresses of both kinds
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(address)
        listening.listen(WAITING)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise StepscopeError(_why(settings, error)) from None
    return listening


def _why(settings: Settings, error: OSError) -> str:
    host, port = settings.host, settings.port
    if error.errno == errno.EADDRINUSE:
        free = _free_port(host)
        return f"--port {port}: this port is in use. Choose another, e.g. --port {free}, or --port 0 for any free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: this machine does not have this address. Give 127.0.0.1, or 0.0.0.0 for all addresses"
    if error.errno == errno.EACCES:
        return f"--port {port}: this user may not listen on this port. Choose one above 1023"
    return f"--host {host} --port {port}: cannot listen there ({error.strerror or error}). Choose another address"


def _free_port(host: str) -> int:
    with suppress(OSError), socket.create_server((host, 0)) as trial:
        return int(trial.getsockname()[1])
    return 0


def _in_url(host: str) -> str:
    if host in ANY_ADDRESS:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
