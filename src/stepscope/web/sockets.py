"""The WebSockets of pages: what NiceGUI leaves open is closed here.

What NiceGUI already does: a page has an id that nobody can guess, and a socket may only join the page whose id it was
opened with, once, and with the tab that joined first. What it does not do: it takes an event from any socket that names
the id of a page. Here the event must come from a socket that joined this page. uvicorn bounds the size of each message;
what the library makes of several is bounded here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from stepscope.present import printable
from stepscope.web.settings import Bounds

log = logging.getLogger("stepscope.web")

FROM_PAGES = ("event", "javascript_response", "ack", "log")
"""Messages of pages that name a page."""

PONG_S = 20.0
"""Seconds that the browser of a page may take to say that it is there. NiceGUI's two pass while the server has much to
do, and a page whose socket was closed is loaded again, which is more to do."""

_LONGEST_LOG = 500


def confine(sio: Any, config: Any, bounds: Bounds) -> None:
    """Restrict a Socket.IO server to what pages of this server need.

    Args:
        sio: NiceGUI's server.
        config: NiceGUI's configuration.
        bounds: Largest message.
    """
    sio.eio.transports = ["websocket"]  # long polling would be a second way in, without bounds on connections
    config.socket_io_js_transports = ["websocket"]
    sio.eio.max_http_buffer_size = bounds.message_bytes
    sio.eio.cors_allowed_origins = []  # checked for every request, see security.py; no header lets others in
    sio.eio.cookie = None
    handlers = sio.handlers["/"]
    for name in FROM_PAGES:
        handlers[name] = _of_its_own_page(handlers[name], sio)
    handlers["log"] = _of_its_own_page(_log, sio)


def be_patient(sio: Any) -> None:
    """Wait for browsers; to be called once NiceGUI has started, which sets what it takes for patience.

    Args:
        sio: NiceGUI's server.
    """
    sio.eio.ping_timeout = PONG_S


def is_expected(message: Mapping[str, Any]) -> bool:
    """Whether a WebSocket message is one that a page sends: text that announces no binary data.

    Pages send none, and the library would collect as many pieces of it as a client announces, in memory.
    """
    text = message.get("text")
    return text is not None and not text.startswith(("b", "45", "46"))


def forget_unseen(pages: Mapping[str, Any], most: int) -> None:
    """Delete the oldest of the pages that were sent to clients and never came alive.

    NiceGUI keeps each for a minute: enough for one client that only asks for pages to fill the memory. Those that came
    alive and lost their socket are left to it: it waits a moment for the browser to connect again.

    Args:
        pages: NiceGUI's clients.
        most: How many of such pages are kept.
    """
    unseen = [one for one in pages.values() if one._response_built and one._pinned_tab_id is None]
    for one in sorted(unseen, key=lambda one: one.created)[: max(len(unseen) - most, 0)]:
        one.delete()


def _of_its_own_page(handler: Callable[[str, Any], None], sio: Any) -> Callable[[str, Any], None]:
    """A handler of messages that takes them from sockets of the page that they name."""

    def handle(sid: str, message: Any = None) -> None:
        if not isinstance(message, dict) or message.get("client_id") not in sio.rooms(sid):
            log.debug("a message of a page that is not the sender's was dropped")
            return
        try:
            handler(sid, message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.debug("a message of a page was malformed", exc_info=error)

    return handle


def _log(_: str, message: dict[str, Any]) -> None:
    """An error in a page, which its script reports."""
    log.debug("a page reports: %s", printable(str(message.get("message", ""))[:_LONGEST_LOG]))
