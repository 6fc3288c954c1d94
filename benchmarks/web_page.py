"""A browser without a screen: opens pages of `stepscope serve`, waits until all their parts are there, and clicks.

A page is a document and what comes over its WebSocket (Socket.IO): parts of it say in `data-state` whether they are
being loaded. Here only that is read, so that many clients cost little beside the server.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import uuid
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import aiohttp

SOCKET = "/_nicegui_ws/socket.io/"
EVENT = "stepscope_go"
WHOLE_S = 60.0
"""How long a page may take until all of it is there."""

_CLIENT = re.compile(r"'client_id': '([^']+)'")
_LISTENER = re.compile(r'"listener_id":"([^"]+)","type":"' + EVENT + '"')
_STATE = re.compile(r'\\?"id\\?":\\?"([^"\\]+)\\?",\\?"data-state\\?":\\?"(\w+)')
_LINK = re.compile(r"(?:<|&lt;|\\u003c)a ([^<>]*?)(?:>|&gt;|\\u003e)")
_HREF = re.compile(r"href=(?:\\*\"|&quot;|&#34;)(/[^\"\\ ]*?)(?:\\*\"|&quot;|&#34;)")
_FAILED = re.compile(r"This part could not be shown|此部分无法显示")


class Failed(Exception):
    """A page that was not shown, and why."""


@dataclass
class Tab:
    """One tab of a browser.

    Args:
        base: Address of the server.
    """

    session: aiohttp.ClientSession
    base: str
    url: str = ""
    links: set[str] = field(default_factory=set)
    """Where the page leads, within the server."""
    changes: set[str] = field(default_factory=set)
    """Those of the links that change what the page shows, without leaving it."""
    faults: int = 0
    """Parts that the server could not show for a fault of its own."""
    _socket: Any = None
    _client: str = ""
    _listener: str = ""
    _loading: set[str] = field(default_factory=set)
    _reader: asyncio.Task[None] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _updates: int = 0

    async def open(self, url: str) -> None:
        """Open a page and wait until all its parts are there."""
        await self.leave()
        self.url, self.links, self.changes = url, set(), set()
        async with self.session.get(self.base + url) as answer:
            text = await answer.text()
            if answer.status != 200:
                raise Failed(f"{url}: status {answer.status}")
        client = _CLIENT.search(text)
        if client is None:
            raise Failed(f"{url}: no page of the application")
        listener = _LISTENER.search(text)
        self._client, self._listener = client[1], listener[1] if listener else ""
        self._loading = set()
        self._read(text)
        query = {
            **{"client_id": self._client, "next_message_id": "0", "implicit_handshake": "true", "old_tab_id": ""},
            **{"document_id": str(uuid.uuid4()), "tab_id": str(uuid.uuid4()), "EIO": "4", "transport": "websocket"},
        }
        self._socket = await self.session.ws_connect(
            self.base + SOCKET, params=query, headers={"Origin": self.base}, max_msg_size=0
        )
        self._reader = asyncio.create_task(self._listen(self._socket))
        await self._whole()

    async def click(self, url: str) -> None:
        """Follow a link: within the page over its socket, as the page's script does, else to another page."""
        if not self.is_change(url):
            await self.open(url)
            return
        self.url, before = url, self._updates
        message = {"id": 0, "client_id": self._client, "listener_id": self._listener, "args": [json.dumps(url)]}
        await self._socket.send_str("42" + json.dumps(["event", message]))
        await self._whole(before)

    def is_change(self, url: str) -> bool:
        """Whether a link changes what the page shows, without leaving it."""
        here = urlsplit(url).path == urlsplit(self.url).path and url != self.url
        return here and url in self.changes and bool(self._listener) and not self._socket.closed

    async def leave(self) -> None:
        """Close the page."""
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    async def _whole(self, before: int | None = None) -> None:
        """Wait until nothing is being loaded, after more updates than `before`."""
        try:
            await asyncio.wait_for(self._nothing_loading(before), WHOLE_S)
        except asyncio.TimeoutError:
            raise Failed(f"{self.url}: after {WHOLE_S:.0f} s without {', '.join(sorted(self._loading))}") from None

    async def _nothing_loading(self, before: int | None) -> None:
        while self._loading or (before is not None and self._updates <= before):
            self._news.clear()
            if self._reader is None or self._reader.done():
                raise Failed(f"{self.url}: the connection of the page was closed")
            await self._news.wait()

    async def _listen(self, socket: Any) -> None:
        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                text = str(message.data)
                if text.startswith("0"):
                    await socket.send_str("40")
                elif text == "2":
                    await socket.send_str("3")
                elif text.startswith("42"):
                    self._read(text)
                    self._updates += '"update"' in text[:16]
                    self._news.set()
        finally:
            self._news.set()

    def _read(self, text: str) -> None:
        for part, state in _STATE.findall(text):
            (self._loading.add if state == "loading" else self._loading.discard)(part)
        if _FAILED.search(text):
            self.faults += 1
        for attributes in _LINK.findall(text):
            if (found := _HREF.search(attributes)) is not None:
                link = html.unescape(html.unescape(found[1])).partition("#")[0]
                self.links.add(link)
                if "data-go" in attributes:
                    self.changes.add(link)

    async def __aenter__(self) -> Tab:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.leave()
