"""Messages of pages are taken from the page that they name, and from no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.web.settings import Bounds
from stepscope.web.sockets import FROM_PAGES, confine, forget_unseen


class Sockets:
    """What of a Socket.IO server is restricted, with two sockets, each of which joined its page."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.eio = SimpleNamespace(transports=["polling", "websocket"], cors_allowed_origins="*", cookie="io")
        self.handlers = {"/": {name: self._noted(name) for name in (*FROM_PAGES, "connect")}}

    def rooms(self, sid: str) -> list[str]:
        return {"a": ["a", "page-a"], "b": ["b", "page-b"]}.get(sid, [])

    def _noted(self, name: str) -> Any:
        def handle(sid: str, message: Any) -> None:
            self.calls.append((name, message["id"]))

        return handle


@pytest.fixture
def sockets() -> Sockets:
    """A restricted server."""
    found, config = Sockets(), SimpleNamespace(socket_io_js_transports=["websocket", "polling"])
    confine(found, config, Bounds(message_bytes=5))
    assert config.socket_io_js_transports == ["websocket"]
    return found


def test_there_is_one_way_in_and_messages_are_bounded(sockets: Sockets) -> None:
    assert sockets.eio.transports == ["websocket"]
    assert sockets.eio.cors_allowed_origins == []
    assert sockets.eio.cookie is None
    assert sockets.eio.max_http_buffer_size == 5


@pytest.mark.parametrize("name", [name for name in FROM_PAGES if name != "log"])
def test_a_socket_speaks_for_its_own_page_alone(sockets: Sockets, name: str) -> None:
    handle = sockets.handlers["/"][name]
    handle("a", {"client_id": "page-a", "id": 1})
    assert sockets.calls == [(name, 1)]
    for sid, message in (
        ("a", {"client_id": "page-b", "id": 2}),
        ("c", {"client_id": "page-a", "id": 2}),
        ("a", {"id": 2}),
        ("a", {"client_id": ["page-a"], "id": 2}),
        ("a", "page-a"),
        ("a", None),
        ("a", [{"client_id": "page-a"}]),
    ):
        handle(sid, message)
    assert sockets.calls == [(name, 1)]


def test_a_malformed_message_costs_only_itself(sockets: Sockets) -> None:
    sockets.handlers["/"]["event"]("a", {"client_id": "page-a"})
    assert sockets.calls == []


def test_pages_that_nobody_opened_give_way_to_newer_ones() -> None:
    deleted: list[str] = []

    def page(name: str, created: float, *, built: bool = True, tab: str | None = None) -> SimpleNamespace:
        return SimpleNamespace(
            created=created, _response_built=built, _pinned_tab_id=tab, delete=lambda: deleted.append(name)
        )

    pages = {
        "new": page("new", 9),
        "alive, or about to connect again": page("alive", 1, tab="tab"),
        "old": page("old", 3),
        "being made": page("being made", 0, built=False),
        "older": page("older", 2),
    }
    forget_unseen(pages, 3)
    assert deleted == []
    forget_unseen(pages, 1)
    assert deleted == ["older", "old"]


def test_what_a_page_logs_is_shortened_to_a_line(sockets: Sockets, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "stepscope.web")
    sockets.handlers["/"]["log"]("a", {"client_id": "page-a", "level": "error", "message": "x\n\x1b[31m" * 1000})
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "\x1b" not in record.getMessage()
    assert len(record.getMessage()) < 3000
