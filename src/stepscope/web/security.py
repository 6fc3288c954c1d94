"""What stands before all that the server answers: every request is checked here, whatever it asks for.

A page elsewhere can make a browser send requests to this server: it can point its own host name here (refused by
`Host`), send forms and open WebSockets (refused by `Origin`), or load images and scripts from here (refused by
`Sec-Fetch-Site`). Other machines and users are kept out by the token.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stepscope.present import printable
from stepscope.texts import Text
from stepscope.web.addresses import API
from stepscope.web.policies import completed
from stepscope.web.refusals import Reply, is_for_people, language_of, problem, refusal, send_reply
from stepscope.web.settings import Settings, is_address, is_loopback
from stepscope.web.signing_in import (
    MISSING,
    MOST_FORM_BYTES,
    PARAMETER,
    SIGN_IN,
    TOO_MANY,
    Door,
    next_address,
    onward_page,
    sent_on,
    sign_in_page,
    token_in,
    without_token,
)
from stepscope.web.sockets import is_expected

log = logging.getLogger("stepscope.web")

METHODS = ("GET", "HEAD", "POST")
SOCKETS = "/_nicegui_ws/"
"""Path below which pages open WebSockets; there are none elsewhere."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_DROPPED = (b"x-forwarded-prefix",)
"""Headers that pages would take addresses from, whoever sent them."""

METHOD = Text("The method {method} is not allowed here.", "此处不允许使用 {method} 方法。")
URL = Text("The address is too long: at most {most} bytes.", "地址过长：最多 {most} 字节。")
HEADERS = Text(
    "The request has too many or too long headers: at most {count}, with {most} bytes.",
    "请求头过多或过长：最多 {count} 个，共 {most} 字节。",
)
BODY = Text("The request is too large: at most {most} bytes.", "请求过大：最多 {most} 字节。")
PATH = Text("There is nothing at this address.", "此地址没有内容。")
NO_HOST = Text("The request has no valid Host header.", "请求缺少有效的 Host 请求头。")
HOST = Text(
    "This server does not answer to the name {host}. If it is a name of this server, add --allow-host {host} to "
    "`stepscope serve`.",
    "此服务不接受主机名 {host}。如果这确实是此服务的名称，请在 `stepscope serve` 后添加 --allow-host {host}。",
)
FOREIGN = Text(
    "The request comes from a page of another site. A reverse proxy must pass on the Host header of the browser.",
    "请求来自其他网站的页面。反向代理必须转发浏览器的 Host 请求头。",
)
FAILED = Text(
    "Something went wrong here. The terminal in which `stepscope serve` runs shows what failed.",
    "出现内部错误。运行 `stepscope serve` 的终端会显示失败原因。",
)


class Refused(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, said: Text, *more: tuple[bytes, bytes]) -> None:
        super().__init__(said.en)
        self.status = status
        self.said = said
        self.more = more


class Security:
    """ASGI middleware around everything else.

    Args:
        app: What answers requests that are allowed.
        settings: Who may ask, and how much.
        door: Tells who knows the token.
    """

    def __init__(self, app: Any, settings: Settings, door: Door) -> None:
        self.app = app
        self.door = door
        self._settings = settings
        self._bounds = settings.bounds
        self._names = settings.hosts()
        self._any_address = not is_loopback(settings.host)
        self._sockets = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        headers = _headers(scope)
        started = False
        path, query = scope["path"], scope["query_string"]

        async def sending(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": completed(list(message["headers"]), headers.get("host", ""))}
            await send(message)

        try:
            self._check(scope, headers)
            if (reply := await self._before(scope, headers, receive)) is not None:
                await send_reply(sending, reply)
                return
            await self.app(_cleaned(scope), _limited(receive, self._bounds.body_bytes), sending)
        except Refused as refused:
            if started:
                raise
            reply = refusal(refused.status, refused.said, path, query, headers)
            await send_reply(sending, reply._replace(headers=[*reply.headers, *refused.more]))
        except Exception as error:
            log.error("%s %s failed", scope["method"], _shown(path), exc_info=error)
            if started:
                raise _Broken from None
            await send_reply(sending, refusal(500, FAILED, path, query, headers))

    async def _websocket(self, scope: Any, receive: Any, send: Any) -> None:
        headers = _headers(scope)
        try:
            self._check(scope, headers)
            if not scope["path"].startswith(SOCKETS):
                raise Refused(404, PATH)
            if not self.door.lets_in(headers):
                raise Refused(401, MISSING)
            if self._sockets >= self._bounds.sockets:
                raise Refused(503, Text("Too many pages are open.", "打开的页面过多。"))
        except Refused as refused:
            await receive()  # the request to connect
            await _refuse_socket(scope, send, problem(refused.status, refused.said.en))
            return
        self._sockets += 1
        try:
            await self.app(_cleaned(scope), _paced(receive, self._bounds.messages_a_second), send)
        except Exception as error:
            log.info("a message of a page could not be taken", exc_info=error)
            raise _Broken from None
        finally:
            self._sockets -= 1

    def _check(self, scope: Any, headers: Mapping[str, str]) -> None:
        """Refuse what is too large, or sent by a page of another site."""
        bounds = self._bounds
        if scope["type"] == "http" and scope["method"] not in METHODS:
            allowed = (b"allow", ", ".join(METHODS).encode())
            raise Refused(405, METHOD.filled(method=_shown(scope["method"])), allowed)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > bounds.url_bytes:
            raise Refused(414, URL.filled(most=bounds.url_bytes))
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if len(scope["headers"]) > bounds.headers or size > bounds.head_bytes:
            raise Refused(431, HEADERS.filled(count=bounds.headers, most=bounds.head_bytes))
        self._check_host(scope)
        self._check_origin(scope, headers)
        if "\0" in scope["path"] or "\\" in scope["path"] or ".." in scope["path"].split("/"):
            raise Refused(404, PATH)

    def _check_host(self, scope: Any) -> None:
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if match is None:
            raise Refused(400, NO_HOST)
        host = match[1].strip("[]").lower().removesuffix(".")
        # a name can be made to point here by whoever owns it, an address cannot
        if host not in self._names and not (self._any_address and is_address(host)):
            raise Refused(421, HOST.filled(host=host))

    def _check_origin(self, scope: Any, headers: Mapping[str, str]) -> None:
        site = headers.get("sec-fetch-site", "")
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if site not in ("", "same-origin", "none"):
            is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            if not (is_read and is_link):
                raise Refused(403, FOREIGN)
        origin = headers.get("origin")
        # a browser that may send no referrer sends `null` with a form
        is_own = origin is None or (origin == "null" and site == "same-origin") or _same(origin, headers["host"])
        if not is_read and not is_own:
            raise Refused(403, FOREIGN)

    async def _before(self, scope: Any, headers: Mapping[str, str], receive: Any) -> Reply | None:
        """What is answered in place of the application; None if the request may pass."""
        query = scope["query_string"]
        reads = scope["method"] in ("GET", "HEAD")
        if not self.door.is_open:
            if scope["path"] == SIGN_IN:
                if reads:
                    return sign_in_page(next_address(query), language_of(query, headers))
                form = parse_qs((await _form(receive, headers)).decode("utf-8", "replace"))
                return await self._sign_in(scope, headers, form.get(PARAMETER, [""])[0].strip(), next_address(query))
            if reads and not scope["path"].startswith(API) and (given := token_in(query)) is not None:
                return await self._sign_in(scope, headers, given, without_token(scope["path"], query))
            if not self.door.lets_in(headers):
                return await self._stranger(scope, headers)
        if _length(headers) > self._bounds.body_bytes:
            raise Refused(413, BODY.filled(most=self._bounds.body_bytes))
        return None

    async def _sign_in(self, scope: Any, headers: Mapping[str, str], given: str, address: str) -> Reply:
        """What a browser gets that gives a token: with the right one, it may go on to an address."""
        if self.door.admits(given):
            return sent_on(address, self.door.cookie(secure=scope["scheme"] == "https"))
        await self._slow_down()
        return sign_in_page(address, language_of(scope["query_string"], headers), wrong=True)

    async def _stranger(self, scope: Any, headers: Mapping[str, str]) -> Reply:
        """What a client without the token gets."""
        if headers.get("authorization"):
            await self._slow_down()
        if scope["method"] not in ("GET", "HEAD") or not is_for_people(scope["path"], headers):
            raise Refused(401, MISSING, (b"www-authenticate", b'Bearer realm="stepscope"'))
        language = language_of(scope["query_string"], headers)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return onward_page(language)
        return sign_in_page(without_token(scope["path"], scope["query_string"]), language)

    async def _slow_down(self) -> None:
        if not await self.door.slows_down():
            raise Refused(429, TOO_MANY, (b"retry-after", b"5"))


class _Broken(Exception):
    """An answer that cannot be finished; it was logged already."""


def _headers(scope: Any) -> dict[str, str]:
    """The headers of a request by name; of several with one name, the first."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def _cleaned(scope: Any) -> Any:
    """A request as it is passed on: HEAD becomes GET, of which the server sends no body."""
    found = {**scope, "headers": [each for each in scope["headers"] if each[0] not in _DROPPED]}
    return {**found, "method": "GET"} if scope.get("method") == "HEAD" else found


def _same(origin: str, host: str) -> bool:
    """Whether an origin is this server; its scheme is that of a reverse proxy, if there is one."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _shown(text: str) -> str:
    """A text of a client as a log and an answer can take it."""
    return printable(text[:200])


def _limited(receive: Any, most: int) -> Any:
    """The body of a request, refused once it is too long; its headers may not have said how long it is."""
    taken = 0

    async def receiving() -> Any:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > most:
                raise Refused(413, BODY.filled(most=most))
        return message

    return receiving


def _length(headers: Mapping[str, str]) -> int:
    """How long a request says that its body is."""
    text = headers.get("content-length", "0")
    return int(text[:20]) if text.isascii() and text.isdecimal() else 0


async def _form(receive: Any, headers: Mapping[str, str]) -> bytes:
    """The body of a form with a token."""
    if _length(headers) > MOST_FORM_BYTES:
        raise Refused(413, BODY.filled(most=MOST_FORM_BYTES))
    taking, body = _limited(receive, MOST_FORM_BYTES), bytearray()
    while True:
        message = await taking()
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body"):
            return bytes(body)


def _paced(receive: Any, most_a_second: float) -> Any:
    """The messages of a WebSocket, at a bounded rate: while one waits, no more are read from its connection. The first
    that no page sends ends it."""
    spare, at = most_a_second, time.monotonic()

    async def receiving() -> Any:
        nonlocal spare, at
        message = await receive()
        now = time.monotonic()
        spare, at = min(spare + (now - at) * most_a_second, most_a_second) - 1.0, now
        if message["type"] == "websocket.receive":
            if not is_expected(message):
                return {"type": "websocket.disconnect", "code": 1008}
            if spare < 0:
                await asyncio.sleep(-spare / most_a_second)
        return message

    return receiving


async def _refuse_socket(scope: Any, send: Any, reply: Reply) -> None:
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [*reply.headers, (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": reply.body})
