"""What a browser may load and run for a page: Content Security Policies, and the headers that every answer has."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

PAGE_HEADER = b"x-nicegui-content"
"""A page of NiceGUI has this header."""

_SCRIPT = re.compile(rb"<script\b([^>]*)>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)
_SOURCE = re.compile(rb"\bsrc\s*=", re.IGNORECASE)

ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]

DATA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
"""Of everything that is no page, in case that a browser shows it as one; drawings have styles and images."""


def page_policy(host: str, scripts: Iterable[str] = ()) -> str:
    """The policy of a page: only this server is asked.

    Args:
        host: Host and port as the browser names them, for WebSockets: older browsers do not count those as `'self'`.
        scripts: Hashes of the scripts in the page. No other script in it runs, so a name in a recording that reached
            the page as HTML would not, either; nor do handlers in attributes. NiceGUI evaluates what its server sends.
    """
    return "; ".join(
        [
            "default-src 'self'",
            " ".join(["script-src 'self' 'unsafe-eval'", *(f"'sha256-{each}'" for each in scripts)]),
            "script-src-attr 'none'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host}",
            "worker-src 'self' blob:",
            "frame-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    )


def scripts_in(page: bytes) -> list[str]:
    """The hashes of the scripts that an HTML page contains."""
    found = (match for match in _SCRIPT.finditer(page) if not _SOURCE.search(match[1]))
    # a browser hashes what its parser gives, in which every end of a line is a line feed
    texts = dict.fromkeys(match[2].replace(b"\r\n", b"\n").replace(b"\r", b"\n") for match in found)
    return [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts]


class PagePolicies:
    """ASGI middleware that gives each page of NiceGUI the policy that fits its scripts.

    Args:
        app: What answers; what it sends must not be compressed.
        sent: Called after each page.
    """

    def __init__(self, app: Any, sent: Callable[[], None] = lambda: None) -> None:
        self.app = app
        self._sent = sent

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        start: dict[str, Any] | None = None
        parts: list[bytes] = []

        async def sending(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_page(message["headers"]):
                start = dict(message)
                return
            if start is None or message["type"] != "http.response.body":
                await send(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            page = b"".join(parts)
            policy = page_policy(host, scripts_in(page))
            start["headers"] = [*start["headers"], (b"content-security-policy", policy.encode("latin-1"))]
            await send(start)
            await send({"type": "http.response.body", "body": page})
            self._sent()

        await self.app(scope, receive, sending)


def _is_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == PAGE_HEADER for name, _ in headers)


def completed(headers: list[tuple[bytes, bytes]], host: str) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with those that every answer has; one that has a policy keeps it."""
    names = {name.lower() for name, _ in headers}
    more = [each for each in ALWAYS if each[0] not in names]
    if b"content-security-policy" not in names:
        mime = next((value for name, value in headers if name.lower() == b"content-type"), b"")
        policy = page_policy(host) if mime.startswith(b"text/html") else DATA_POLICY
        more.append((b"content-security-policy", policy.encode("latin-1")))
    return [*headers, *more]
