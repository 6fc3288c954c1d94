"""Who may talk to manager and proxy: nobody beyond this machine, unless a token or mutual TLS tells friend from
stranger."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from stepscope.errors import StepscopeError
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.pem import certificates_in, pair_in
from stepscope.live.control.rates import Bucket, bucket

log = logging.getLogger("stepscope")

TOKEN_VARIABLE = "STEPSCOPE_LIVE_TOKEN"
TOKEN_FILE_VARIABLE = "STEPSCOPE_LIVE_TOKEN_FILE"
SHORTEST_TOKEN = 16
"""Shorter tokens can be guessed."""
_HEADER, _SCHEME = "authorization", "Bearer "
_MOST_ADDRESSES = 4096
_ALWAYS_LOCAL = "unix:"


class Insecure(StepscopeError):
    """The settings would let strangers in, or cannot be used."""


@dataclass(frozen=True)
class Security:
    """How peers prove who they are.

    Args:
        token: A secret that both sides know.
        cert: File of this side's certificate, PEM, with `key`.
        key: Its private key.
        ca: Certificates that sign those of peers. With it, a server demands a certificate of its clients.
    """

    token: str | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    @classmethod
    def stated(
        cls,
        token_file: Path | None = None,
        cert: Path | None = None,
        key: Path | None = None,
        ca: Path | None = None,
    ) -> Security:
        """From options; the token also from `STEPSCOPE_LIVE_TOKEN_FILE` or `STEPSCOPE_LIVE_TOKEN`.

        Raises:
            Insecure: If a file cannot be read, the token is too short, or a certificate lacks its key.
        """
        named = os.environ.get(TOKEN_FILE_VARIABLE)
        file = token_file or (Path(named) if named else None)
        token = _token_in(file) if file else os.environ.get(TOKEN_VARIABLE, "").strip() or None
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
            raise Insecure(
                f"the token must have at least {SHORTEST_TOKEN} printable ASCII characters. Make one: "
                "openssl rand -hex 32 > FILE"
            )
        if (cert is None) != (key is None):
            raise Insecure("a certificate needs its private key. Give both --tls-cert and --tls-key")
        return cls(token, cert, key, ca)

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.cert is not None or self.ca is not None

    def check_server(self, host: str) -> None:
        """Whether a server may listen on an address.

        Raises:
            Insecure: If it is reachable from other machines, and neither a token nor mutual TLS is set.
        """
        if self.ca is not None and self.cert is None:
            raise Insecure("a server with --tls-ca needs its own certificate. Give --tls-cert and --tls-key as well")
        mutual = self.cert is not None and self.ca is not None
        if not is_loopback(host) and self.token is None and not mutual:
            raise Insecure(
                f"{host} can be reached from other machines, so clients must prove who they are. Give --token-file "
                f"FILE (or set {TOKEN_VARIABLE}), or --tls-cert, --tls-key and --tls-ca for mutual TLS, or listen on "
                "127.0.0.1"
            )
        if not is_loopback(host) and not self.has_tls:
            log.warning(
                "%s: the token and all messages travel unencrypted; use TLS in networks that others share", host
            )

    def add_port(self, server: Any, host: str, port: int, option: str = "--port") -> int:
        """Let a server listen; returns the port, which is chosen if 0 is given.

        Args:
            option: Chooses another port; for the message.

        Raises:
            StepscopeError: If the port is in use, or the certificates cannot be used.
        """
        address = address_of(host, port)
        try:
            if self.cert is not None and self.key is not None:
                roots, pair = self._contents()
                credentials = grpc.ssl_server_credentials([pair], roots, roots is not None)
                bound = server.add_secure_port(address, credentials)
            else:
                bound = server.add_insecure_port(address)
        except (RuntimeError, ValueError) as error:
            bound, problem = 0, str(error).splitlines()[0].partition("; set GRPC_VERBOSITY")[0]
        else:
            problem = "it cannot be opened"
        if not bound:
            raise StepscopeError(_cannot_listen(host, port, problem, option))
        return int(bound)

    def channel(self, target: str, bounds: Bounds = BOUNDS) -> Any:
        """A channel to a server, `HOST:PORT` or `unix:PATH`; calls carry `metadata`."""
        options = [*_options(bounds), ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        if not self.has_tls or target.startswith(_ALWAYS_LOCAL):
            return grpc.aio.insecure_channel(target, options=options)
        roots, (key, cert) = self._contents()
        credentials = grpc.ssl_channel_credentials(roots, key, cert)
        return grpc.aio.secure_channel(target, credentials, options=options)

    def _contents(self) -> tuple[bytes | None, tuple[bytes | None, bytes | None]]:
        """Certificates of the authority; key and certificate of this side."""
        roots = certificates_in(self.ca) if self.ca is not None else None
        return roots, (pair_in(self.key, self.cert) if self.key is not None and self.cert is not None else (None, None))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What each call of a client carries."""
        return () if self.token is None else ((_HEADER, _SCHEME + self.token),)

    def server(self, bounds: Bounds = BOUNDS) -> Any:
        """A gRPC server that serves only friends, and each address at a bounded rate."""
        options = [
            *_options(bounds),
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", bounds.streams),
            ("grpc.server_handshake_timeout_ms", int(bounds.hello_within_s * 1000)),
        ]
        return grpc.aio.server(interceptors=[_Guard(self.token, bounds)], options=options)


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only. A name other than `localhost` is taken not to be."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(host: str, port: int) -> str:
    """Host and port as gRPC takes them."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


class _Guard(grpc.aio.ServerInterceptor):  # type: ignore[misc] # untyped base
    """Refuses calls without the token, and calls of an address that makes too many.

    Calls over a Unix socket need no token: its directory lets in this user only.
    """

    def __init__(self, token: str | None, bounds: Bounds) -> None:
        self._wanted = None if token is None else (_SCHEME + token).encode()
        self._bounds = bounds
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """See gRPC."""
        handler = await continuation(details)
        if handler is None:
            return None
        given = dict(details.invocation_metadata or ()).get(_HEADER, "")
        return _guarded(handler, lambda context: self._check(context, given))

    async def _check(self, context: Any, given: str | bytes) -> None:
        peer = context.peer()
        if peer.startswith(_ALWAYS_LOCAL):
            return
        if not self._bucket(peer.rpartition(":")[0]).take():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls; wait a second")
        text = given if isinstance(given, bytes) else given.encode("utf-8", "replace")
        if self._wanted is not None and not hmac.compare_digest(text, self._wanted):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                f"the token is missing or wrong. Give --token-file FILE, or set {TOKEN_VARIABLE}",
            )

    def _bucket(self, address: str) -> Bucket:
        known = self._buckets.get(address)
        if known is None:
            known = self._buckets[address] = bucket(self._bounds.calls_a_second, self._bounds)
            if len(self._buckets) > _MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        return known


def _guarded(handler: Any, check: Callable[[Any], Awaitable[None]]) -> Any:
    """A handler that answers only if a check lets it."""

    async def one(request: Any, context: Any) -> Any:
        await check(context)
        return await (handler.stream_unary or handler.unary_unary)(request, context)

    async def many(request: Any, context: Any) -> Any:
        await check(context)
        answers = (handler.stream_stream or handler.unary_stream)(request, context)
        async for answer in answers:
            yield answer

    makers: dict[tuple[bool, bool], tuple[Any, Any]] = {
        (False, False): (grpc.unary_unary_rpc_method_handler, one),
        (False, True): (grpc.unary_stream_rpc_method_handler, many),
        (True, False): (grpc.stream_unary_rpc_method_handler, one),
        (True, True): (grpc.stream_stream_rpc_method_handler, many),
    }
    make, behaviour = makers[handler.request_streaming, handler.response_streaming]
    return make(behaviour, handler.request_deserializer, handler.response_serializer)


def _options(bounds: Bounds) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", bounds.message_bytes),
        ("grpc.max_send_message_length", bounds.message_bytes),
        ("grpc.keepalive_time_ms", 5_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 2_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.max_metadata_size", 16_384),
    ]


def _token_in(file: Path) -> str:
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o007:  # mounted secrets often are, within a container
            log.warning("%s: all users of this machine can read the token; restrict it with chmod 600", file)
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Insecure(f"{file}: the token cannot be read ({reason}). Check the path of --token-file") from error


def _cannot_listen(host: str, port: int, problem: str, option: str) -> str:
    return (
        f"{address_of(host, port)}: cannot listen there ({problem}). If the port is in use, another manager or proxy "
        f"may be running: stop it (`ss -ltnp 'sport = :{port}'` names its process), or choose another port with "
        f"{option}"
    )
