"""A server in this process with an application of the test's own behind the checks of each request."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.web.policies import PagePolicies
from stepscope.web.security import Security
from stepscope.web.server import Server
from stepscope.web.serving import Listener
from stepscope.web.settings import Bounds, Settings
from stepscope.web.signing_in import Door

TOKEN = "0123456789abcdef-token"
PAGE = b"<!doctype html><script>let a = 1</script><script src='/x.js'></script><p onclick='a()'>hello</p>"


@dataclass
class Place:
    """A running server.

    Args:
        settings: What it was started with, and its port.
        seen: The requests that came through to the application.
        server: It.
    """

    settings: Settings
    seen: list[dict[str, Any]] = field(default_factory=list)
    server: Server | None = None
    door: Door | None = None

    def ask(
        self, method: str = "GET", path: str = "/", body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by lower-case name and body of the answer to a request; `_` in a header's name is `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.settings.port, timeout=20)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def connect(self, *, receive_buffer: int | None = None) -> socket.socket:
        """A connection on which the test writes what it likes."""
        plain = socket.socket()
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(20)
        plain.connect(("127.0.0.1", self.settings.port))
        return plain

    def number_open(self) -> int:
        """How many connections the server has."""
        assert self.server is not None
        return len(self.server.open.known)


@contextmanager
def answering(
    *,
    token: str | None = None,
    host: str = "127.0.0.1",
    names: tuple[str, ...] = (),
    bounds: Bounds | None = None,
    app: Callable[..., Any] | None = None,
) -> Iterator[Place]:
    """A server with a small application, which notes what comes through to it."""
    settings = Settings((Path(),), host=host, port=0, token=token, names=names, bounds=bounds or Bounds(guess_s=0.05))
    with Listener(settings) as listener:
        place = Place(listener.settings)
        place.door = Door(token, place.settings.port, place.settings.bounds)
        secured = Security(PagePolicies(app or _application(place)), place.settings, place.door)
        ready = threading.Event()
        place.server = Server(secured, place.settings, ready.set)
        thread = threading.Thread(target=place.server.run, kwargs={"sockets": [listener.socket]}, daemon=True)
        thread.start()
        assert ready.wait(20)
        try:
            yield place
        finally:
            place.server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def until(met: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether something is the case before some time has passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if met():
            return True
        time.sleep(0.02)
    return met()


def _application(place: Place) -> Callable[..., Any]:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] == "websocket":
            await receive()
            place.seen.append(scope)
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                await send({"type": "websocket.send", "text": f"got {len(message.get('text') or '')}"})
            return
        await _http(place, scope, receive, send)

    return application


async def _http(place: Place, scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/fails":
        raise RuntimeError("a secret of the server")
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        body += message.get("body", b"")
        more = message.get("more_body", False)
    place.seen.append({**scope, "body": body})
    answers: dict[str, tuple[bytes, list[tuple[bytes, bytes]]]] = {
        "/large": (b"x" * 50_000_000, [(b"content-type", b"text/plain")]),
        "/own-policy": (b"<p>", [(b"content-type", b"text/html"), (b"content-security-policy", b"default-src 'self'")]),
        "/page": (PAGE, [(b"content-type", b"text/html; charset=utf-8"), (b"x-nicegui-content", b"page")]),
        "/data": (b"{}", [(b"content-type", b"application/json")]),
    }
    content, headers = answers.get(scope["path"], (b"hello", [(b"content-type", b"text/html")]))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, max(len(content), 1), 100_000):
        await send({"type": "http.response.body", "body": content[start : start + 100_000], "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
