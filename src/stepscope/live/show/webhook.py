"""Events of a job as HTTP requests: a POST of one JSON object each."""

from __future__ import annotations

import http.client
import os
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from stepscope._version import __version__
from stepscope.errors import StepscopeError
from stepscope.live.show.event_source import deliver
from stepscope.live.show.event_types import AnyEvent, to_json
from stepscope.live.show.outbox import CannotDeliver, Outbox
from stepscope.live.show.watched import Watched

SECRET_VARIABLE = "STEPSCOPE_WEBHOOK_SECRET"
SECRET_FILE_VARIABLE = "STEPSCOPE_WEBHOOK_SECRET_FILE"
HEADER_VARIABLE = "STEPSCOPE_WEBHOOK_HEADER"
"""The header that carries the secret, if it is not `Authorization`."""
TIMEOUT_S = 5.0
"""For connecting, and for each wait for the answer."""
_LOCAL = ("127.0.0.1", "localhost", "::1")
_TRY_AGAIN = (408, 425, 429)


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
            raise StepscopeError(f"{self.shown}: http would send events unencrypted to another host. Use https")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not value.isascii() or not value.isprintable():
                raise StepscopeError(
                    f"{self.shown}: a header must be a name of letters, digits and -, and its value one line of ASCII"
                )

    @cached_property
    def context(self) -> ssl.SSLContext | None:
        """What connections by https are made with, once for all of them; None by http."""
        return ssl.create_default_context() if urlsplit(self.url).scheme == "https" else None

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


def post(target: Target, body: bytes) -> None:
    """Send one request and judge the answer. Redirects are not followed: another host may be behind them.

    Raises:
        CannotDeliver: Unless the answer is 2xx.
    """
    parts = urlsplit(target.url)
    fixed = {"Content-Type": target.content_type, "User-Agent": f"stepscope/{__version__}"}
    host = parts.hostname or ""
    connection: http.client.HTTPConnection
    if target.context is not None:
        connection = http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=target.context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    try:
        connection.request(
            "POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, {**target.headers, **fixed}
        )
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        raise CannotDeliver(f"no answer ({error or type(error).__name__})", again=True) from error
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return
    if 300 <= answer.status < 400:
        raise CannotDeliver("the answer is a redirect, which is not followed. Give the final URL", again=False)
    again = answer.status >= 500 or answer.status in _TRY_AGAIN
    raise CannotDeliver(f"the answer is {answer.status} {answer.reason}", again=again)


def stated_secret() -> str:
    """The secret from the environment, or from the file that it names; empty if there is none.

    Raises:
        StepscopeError: If the file cannot be read.
    """
    file = os.environ.get(SECRET_FILE_VARIABLE)
    if os.environ.get(SECRET_VARIABLE) or not file:
        return os.environ.get(SECRET_VARIABLE, "").strip()
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StepscopeError(
            f"{file}: the secret of the webhook cannot be read. Check {SECRET_FILE_VARIABLE}"
        ) from error


def follow(manager: Watched, url: str, *, header: str = "", secret: str = "") -> Callable[[], None]:
    """Send the events of a manager to a URL from now on, in order, one a request. The event loop never waits.

    A failed request is repeated with growing pauses; while more than a bounded number waits, the oldest are lost.

    Args:
        url: `https://...`, or `http://...` on this host.
        header: Name of the header with the secret. Default: `STEPSCOPE_WEBHOOK_HEADER`, else `Authorization`.
        secret: Its value, e.g. `Bearer ...`. Default: `STEPSCOPE_WEBHOOK_SECRET`, else what is in the file that
            `STEPSCOPE_WEBHOOK_SECRET_FILE` names, else none.

    Returns:
        A function that delivers what is queued, for a short time, and ends.

    Raises:
        StepscopeError: If the URL cannot be used, or the file cannot be read.
    """
    secret = secret or stated_secret()
    header = header or os.environ.get(HEADER_VARIABLE, "") or "Authorization"
    target = Target(url, {header: secret} if secret else {})
    box: Outbox[AnyEvent] = Outbox(f"webhook {target.shown}", lambda event: post(target, to_json(event)))
    return deliver(manager, box)
