"""What a client gets that is refused: a page for people, problem JSON for programs; text and nothing else."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from stepscope.present import LANGUAGES, Language
from stepscope.texts import Text
from stepscope.web.addresses import API

LANGUAGE_COOKIE = "stepscope_lang"
"""Set by the pages: the language that was chosen last."""

PAGE_POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Content Security Policy of the pages here, which have no script."""

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:12vh auto 0;max-width:34rem;padding:0 1rem}
h1{font-size:1.35rem}
label,input,button{font:inherit;display:block}
input{box-sizing:border-box;width:100%;margin:.35rem 0 1rem;padding:.5rem}
button{padding:.5rem 1.2rem;cursor:pointer}
.problem{color:#c62828;font-weight:600}
@media(prefers-color-scheme:dark){.problem{color:#ff8a80}}
"""


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def cookies_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The cookies of a request; of several with one name, the first."""
    found: dict[str, str] = {}
    for part in headers.get("cookie", "").split(";"):
        name, sign, value = part.strip().partition("=")
        if sign:
            found.setdefault(name, value)
    return found


def language_of(query: bytes, headers: Mapping[str, str]) -> Language:
    """The language of a reader: that of the URL, else the one chosen last, else the first that the browser asks for."""
    asked = parse_qs(query.decode("latin-1"), max_num_fields=None).get("lang", [""])[0]
    wanted = asked or cookies_of(headers).get(LANGUAGE_COOKIE, "") or headers.get("accept-language", "").strip()[:2]
    return next((known for known in LANGUAGES if known == wanted.lower()), "en")


def is_for_people(path: str, headers: Mapping[str, str]) -> bool:
    """Whether an answer is shown by a browser as a page."""
    return not path.startswith(API) and "text/html" in headers.get("accept", "")


def refusal(status: int, said: Text, path: str, query: bytes, headers: Mapping[str, str]) -> Reply:
    """An answer that says why a request is refused, in the form that its client can show."""
    language = language_of(query, headers)
    if is_for_people(path, headers):
        title = f"{status} {HTTPStatus(status).phrase}"
        return page(status, title, f"<p>{html.escape(said.of(language))}</p>", language)
    return problem(status, said.of(language))


def problem(status: int, detail: str) -> Reply:
    """An answer for programs (RFC 9457)."""
    body = json.dumps(
        {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail},
        ensure_ascii=False,
    ).encode()
    return Reply(status, _headers("application/problem+json", body), body)


def page(status: int, title: str, content: str, language: Language, *, refresh: bool = False) -> Reply:
    """A page without script.

    Args:
        title: Its title and heading, plain text.
        content: What follows, HTML.
        refresh: Whether the browser asks for the same address again at once.
    """
    again = '<meta http-equiv="refresh" content="0">' if refresh else ""
    heading = html.escape(title)
    body = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading} - stepscope</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{heading}</h1>{content}</main></body></html>"
    ).encode()
    headers = _headers("text/html; charset=utf-8", body)
    return Reply(status, [*headers, (b"content-security-policy", PAGE_POLICY.encode())], body)


def _headers(mime: str, body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", mime.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]


async def send_reply(send: Any, reply: Reply) -> None:
    """Send an answer to an ASGI client."""
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
    await send({"type": "http.response.body", "body": reply.body})
