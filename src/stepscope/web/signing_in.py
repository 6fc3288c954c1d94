"""Who may ask: clients that know the token, and browsers that gave it once and have a cookie since.

The cookie does not hold the token: it says until when it is good, signed with a key made from the token. It therefore
stays good when the server starts again with the same token, and no list of sessions can grow.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
import secrets
import time
from collections.abc import Mapping
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

from stepscope.present import Language
from stepscope.texts import Text
from stepscope.web.refusals import Reply, cookies_of, page
from stepscope.web.settings import Bounds

SIGN_IN = "/sign-in"
PARAMETER = "token"
GOOD_FOR_S = 7 * 24 * 3600
MOST_FORM_BYTES = 4096
ONE_TIME_S = 60.0

TITLE = Text("Sign in to stepscope", "登录 stepscope")
LABEL = Text("Token", "令牌")
HINT = Text(
    "Whoever started this server with `stepscope serve` knows the token: it was given by --token-file, --token or "
    "STEPSCOPE_TOKEN.",
    "启动此服务（stepscope serve）的人知道令牌：它由 --token-file、--token 或 STEPSCOPE_TOKEN 给出。",
)
BUTTON = Text("Sign in", "登录")
WRONG = Text("This token is wrong.", "令牌错误。")
MISSING = Text(
    "The token is missing or wrong. Send it as the header `Authorization: Bearer TOKEN`.",
    "缺少令牌或令牌错误。请用请求头 `Authorization: Bearer TOKEN` 发送。",
)
TOO_MANY = Text("Too many wrong tokens. Wait a few seconds.", "错误的令牌过多，请稍候几秒。")
ONWARD = Text("One moment", "请稍候")


class Door:
    """Tells clients with the token from others.

    Args:
        token: The token; None lets everybody in.
        port: Port of the server. Cookies do not distinguish ports, so it is part of their name.
        bounds: How wrong tokens are slowed down.
    """

    def __init__(self, token: str | None, port: int, bounds: Bounds) -> None:
        self._token = None if token is None else token.encode()
        self._key = b"" if token is None else hmac.digest(token.encode(), b"stepscope web session", "sha256")
        self._cookie = f"stepscope_session_{port}"
        self._bounds = bounds
        self._waiting = 0
        self._one_time: dict[bytes, float] = {}

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return self._token is None

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes from a client that knows the token."""
        if self._token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return self._is_session(cookies_of(headers).get(self._cookie, ""))

    def admits(self, given: str) -> bool:
        """Whether a text is the token, or one that opens a page once."""
        digest = hashlib.sha256(given.encode("utf-8", "replace")).digest()
        until = self._one_time.pop(digest, None)
        return self._is_token(given) or (until is not None and until > time.monotonic())

    def one_time(self) -> str:
        """A text that is taken for the token once, within a minute: for a browser that is opened by a command."""
        text = secrets.token_urlsafe(24)
        self._one_time[hashlib.sha256(text.encode()).digest()] = time.monotonic() + ONE_TIME_S
        return text

    async def slows_down(self) -> bool:
        """Wait after a wrong token; False if so many wait already that this one is refused at once."""
        if self._waiting >= self._bounds.guesses:
            return False
        self._waiting += 1
        try:
            await asyncio.sleep(self._bounds.guess_s)
        finally:
            self._waiting -= 1
        return True

    def cookie(self, *, secure: bool) -> tuple[bytes, bytes]:
        """The header that lets a browser in from now on."""
        text = f"{self._cookie}={self._session()}; Path=/; HttpOnly; SameSite=Strict; Max-Age={GOOD_FOR_S}"
        return b"set-cookie", (text + ("; Secure" if secure else "")).encode()

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _session(self) -> str:
        text = f"{int(time.time()) + GOOD_FOR_S}.{secrets.token_urlsafe(12)}"
        return f"{text}.{self._signature(text)}"

    def _is_session(self, given: str) -> bool:
        text, _, signature = given.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(text).encode()):
            return False
        return int(text.partition(".")[0]) > time.time()

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), "sha256").hexdigest()


def without_token(path: str, query: bytes) -> str:
    """The address of a request without its token."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in pairs if name != PARAMETER])
    return quote(path, safe="/:@!$&'()*+,;=~") + (f"?{kept}" if kept else "")


def token_in(query: bytes) -> str | None:
    """The token that an address contains."""
    return parse_qs(query.decode("latin-1"), keep_blank_values=True).get(PARAMETER, [None])[0]


def sent_on(address: str, cookie: tuple[bytes, bytes]) -> Reply:
    """An answer that sends a browser on to an address, with the cookie."""
    headers = [(b"location", address.encode("latin-1")), cookie, (b"content-length", b"0")]
    return Reply(303, [*headers, (b"cache-control", b"no-store")], b"")


def sign_in_page(address: str, language: Language, *, wrong: bool = False) -> Reply:
    """The page that asks for the token.

    Args:
        address: What is shown afterwards.
        wrong: Whether a wrong token was given.
    """
    complaint = f'<p class="problem" role="alert">{WRONG.of(language)}</p>' if wrong else ""
    action = html.escape(f"{SIGN_IN}?{urlencode({'next': address, 'lang': language})}", quote=True)
    content = (
        f'{complaint}<form method="post" action="{action}">'
        f'<label for="token">{LABEL.of(language)}</label>'
        f'<input id="token" name="{PARAMETER}" type="password" autocomplete="current-password" autofocus required>'
        f'<button type="submit">{BUTTON.of(language)}</button></form><p><small>{HINT.of(language)}</small></p>'
    )
    return page(401, TITLE.of(language), content, language)


def onward_page(language: Language) -> Reply:
    """A page that asks for its own address again: a request that comes from a link on another site has no cookie,
    one that comes from a page of this server has it."""
    return page(200, ONWARD.of(language), "", language, refresh=True)


def next_address(query: bytes) -> str:
    """Where a browser goes after signing in: always an address of this server."""
    address = parse_qs(query.decode("latin-1")).get("next", ["/"])[0]
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local and address.isascii() and not address.startswith(SIGN_IN) else "/"
