"""Figures of a job for Prometheus: an HTTP server of its own, on loopback unless a token guards it."""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.control.security import Security, address_of
from stepscope.live.places import LOOPBACK
from stepscope.live.show.figures import Family, Snapshot, families, snapshot
from stepscope.live.show.view import View, view_of
from stepscope.live.show.watched import Watched

log = logging.getLogger("stepscope")

TIMEOUT_S = 10.0
"""For a request, and for the event loop to answer."""
AT_ONCE = 8
"""Requests beyond are refused."""
OPEN = Security()
"""No token and no TLS: enough on loopback only."""


class Collector:
    """The families of one snapshot, as the Prometheus client takes them."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take

    def collect(self) -> Iterator[Any]:
        """See the Prometheus client."""
        taken = self._take()
        for family in families(taken):
            yield _as_prometheus(family, taken.status.job)


def _as_prometheus(family: Family, job: str) -> Any:
    from prometheus_client import core  # noqa: PLC0415 - only a manager with metrics needs it

    described = family.described
    kinds = {
        "gauge": core.GaugeMetricFamily,
        "counter": core.CounterMetricFamily,
        "summary": core.SummaryMetricFamily,
    }
    made = kinds[described.kind](described.name, described.help, labels=("job", *described.labels))
    for sample in family.samples:
        labels = (job, *sample.labels)
        if described.kind == "summary":
            made.add_metric(labels, count_value=sample.number, sum_value=sample.value)
        else:
            made.add_metric(labels, sample.value)
    return made


def serve(
    manager: Watched, port: int, *, host: str = LOOPBACK, security: Security = OPEN
) -> tuple[int, Callable[[], None]]:
    """Serve `/metrics` of a manager, from a thread; to be called in the manager's event loop.

    Args:
        port: 0 chooses one.
        host: Address to listen on.
        security: Its token must be sent as `Authorization: Bearer TOKEN`; it is required unless `host` is loopback.

    Returns:
        The port, and a function that ends it.

    Raises:
        StepscopeError: If the address is in use or would let strangers in, or the Prometheus client is missing.
    """
    try:
        import prometheus_client  # noqa: F401, PLC0415
    except ImportError as error:
        raise StepscopeError("metrics need the Prometheus client. Install it: pip install 'stepscope[live]'") from error
    security.check_server(host)
    take = _in_loop(view_of(manager), asyncio.get_running_loop())
    try:
        server = _Server((host, port), Collector(take), security.token)
        if security.cert is not None:
            server.socket = _context(security).wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
    except (OSError, OverflowError) as error:
        raise StepscopeError(
            f"{address_of(host, port)}: metrics cannot be served there ({getattr(error, 'strerror', None) or error}). "
            "Choose another port with --metrics-port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="stepscope-metrics", daemon=True)
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return int(server.server_address[1]), close


def _in_loop(view: View, loop: asyncio.AbstractEventLoop) -> Callable[[], Snapshot]:
    """A function for other threads that takes a snapshot in the event loop."""

    async def taken() -> Snapshot:
        return snapshot(view)

    return lambda: asyncio.run_coroutine_threadsafe(taken(), loop).result(TIMEOUT_S)


def _context(security: Security) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(security.cert), str(security.key))
    if security.ca is not None:
        context.load_verify_locations(str(security.ca))
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class _Server(ThreadingHTTPServer):
    """Answers a bounded number of requests at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], collector: Collector, token: str | None) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415

        if ":" in address[0]:
            import socket  # noqa: PLC0415

            self.address_family = socket.AF_INET6
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        self.token = None if token is None else f"Bearer {token}".encode()
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See the base class."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See the base class."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as in the base class
        """A client that goes away is no news."""
        log.debug("a request for metrics has failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server: _Server
    server_version = "stepscope"
    sys_version = ""

    def do_GET(self) -> None:
        """`/metrics`, and nothing else."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415

        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if self.server.token is not None and not hmac.compare_digest(given, self.server.token):
            self._answer(401, b"the token is missing or wrong\n")
        elif self.path.partition("?")[0] not in ("/metrics", "/metrics/"):
            self._answer(404, b"see /metrics\n")
        else:
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            try:
                text = encode(self.server.registry)
            except Exception:  # the event loop is busy or has ended
                log.debug("metrics cannot be collected", exc_info=True)
                self._answer(503, b"the manager does not answer\n")
                return
            self._answer(200, text, content_type)

    def _answer(self, code: int, text: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text)))
        if code == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as in the base class
        """Requests are not logged."""
