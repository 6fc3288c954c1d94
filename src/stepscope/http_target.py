"""HTTP requests: URLs that may be used, headers that the environment states for collectors, and one POST."""

from __future__ import annotations

import http.client
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from stepscope._version import __version__
from stepscope.errors import StepscopeError

HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
"""Headers of each request, e.g. `api-key=...`, as OpenTelemetry defines it."""

_LOCAL = ("127.0.0.1", "localhost", "::1")


class Answer(NamedTuple):
    """The answer to a request.

    Args:
        status: Its status.
        reason: What the server calls that.
        content: The start of its content.
    """

    status: int
    reason: str
    content: bytes

    @property
    def is_redirect(self) -> bool:
        """Whether it points to another URL."""
        return 300 <= self.status < 400

    @property
    def is_good(self) -> bool:
        """Whether the request was taken."""
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Target:
    """Where requests go.

    Args:
        url: `https://...`, or `http://...` on this host.
        headers: Of each request, which may hold secrets; never logged.
        content_type: Of the body.
        plain: Whether http is allowed to other hosts.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    plain: bool = False

    def __post_init__(self) -> None:
        """Check the URL.

        Raises:
            StepscopeError: If it is no URL that may be used.
        """
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise StepscopeError(f"{self.shown}: is not a URL ({error}). Example: https://host/path") from error
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            raise StepscopeError(
                f"{self.shown}: is not a URL that can be used. Write https://host/path, without user and password"
            )
        if self.goes_plain and not self.plain:
            raise StepscopeError(f"{self.shown}: http would send data unencrypted to another host. Use https")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not value.isascii() or not value.isprintable():
                raise StepscopeError(
                    f"{self.shown}: a header cannot be sent. Its name may have letters, digits, - and _, and its "
                    "value must be one line of ASCII"
                )

    @cached_property
    def context(self) -> ssl.SSLContext | None:
        """What connections by https are made with, once for all of them; None by http."""
        return ssl.create_default_context() if urlsplit(self.url).scheme == "https" else None

    def post(self, body: bytes, *, timeout_s: float, content_bytes: int = 0) -> Answer:
        """Send one request. Redirects are not followed: another host may be behind them.

        Args:
            body: What is sent.
            timeout_s: For connecting, and for each wait for the answer.
            content_bytes: How much of the answer's content is read, at most.

        Raises:
            OSError, http.client.HTTPException: If there is no answer.
        """
        parts = urlsplit(self.url)
        host, path = parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fixed = {"Content-Type": self.content_type, "User-Agent": f"stepscope/{__version__}"}
        connection = (
            http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
            if self.context is None
            else http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=self.context)
        )
        try:
            connection.request("POST", path, body, {**self.headers, **fixed})
            answer = connection.getresponse()
            return Answer(answer.status, answer.reason, answer.read(content_bytes) if content_bytes else b"")
        finally:
            connection.close()

    @property
    def goes_plain(self) -> bool:
        """Whether requests travel unencrypted to another host."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in _LOCAL

    @property
    def shown(self) -> str:
        """The URL without user, password and query, which may be secrets; safe for logs."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}" if rest else scheme[:80]


def stated_headers() -> dict[str, str]:
    """The headers that the environment states for requests to a collector."""
    pairs = (each.partition("=") for each in os.environ.get(HEADERS_VARIABLE, "").split(",") if "=" in each)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
