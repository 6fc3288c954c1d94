"""`stepscope serve`, in a process of its own as a user starts it."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import main
from tests.cli.calling import EXAMPLE, printed
from tests.ports import free_port
from tests.web.served import ASSETS, serving

needs_web = pytest.mark.skipif(find_spec("nicegui") is None, reason="needs the extra `web`")


def files_below(directory: Path) -> dict[str, tuple[int, int]]:
    """All below a directory, with sizes and times of change."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in directory.rglob("*")}


def until(met: Any, seconds: float = 60) -> bool:
    """Whether something is the case before some time has passed."""
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@needs_web
def test_runs_are_shown_and_nothing_is_left_behind(tmp_path: Path) -> None:
    runs, here = tmp_path / "runs", tmp_path / "here"
    shutil.copytree(EXAMPLE, runs / "job")
    here.mkdir()
    before = files_below(runs)
    with serving(here, runs) as served:
        status, headers, page = served.ask(Accept="text/html")
        assert status == 200
        assert "<title>" in page
        assert "script-src 'self' 'unsafe-eval' 'sha256-" in headers["content-security-policy"]
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
        assert until(lambda: '"state":"ready"' in served.ask("/api/v1/runs")[2])
        (run,) = set(re.findall(r'"id":"([^"]+)"', served.ask("/api/v1/runs")[2]))
        assert served.ask(f"/runs/{run}", Accept="text/html")[0] == 200

        status, headers, text = served.ask("/no-such-page", Accept="text/html")
        assert status == 404
        assert "There is nothing at this address" in text
        for path in ("/../etc/passwd", f"{ASSETS}/..%2f..%2f..%2fpyproject.toml", "//etc/passwd"):
            assert served.ask(path)[0] == 404, path
        for name in ("..", "../../etc/passwd", "%2e%2e%2f", str(runs / "job"), "job", f"{run}%00", f"{run}/../x"):
            assert served.ask(f"/api/v1/runs/{name}")[0] in (404, 400), name
            assert served.ask(f"/runs/{name}", Accept="text/html")[0] in (404, 400), name
        assert served.ask("/", Host="evil.example")[0] == 421
        polling = served.ask("/_nicegui_ws/socket.io/?EIO=4&transport=polling")
        assert polling[0] == 400
        assert "access-control-allow-origin" not in polling[1]

        code, seconds, err = served.end()
    assert code == 0
    assert seconds < 10
    assert "Traceback" not in err
    assert "press Ctrl-C to end" in err
    assert str(runs) in err
    assert files_below(runs) == before
    assert list(here.iterdir()) == []


@needs_web
def test_links_out_of_a_directory_show_nothing(tmp_path: Path) -> None:
    runs, outside = tmp_path / "runs", tmp_path / "outside"
    shutil.copytree(EXAMPLE, runs / "inside")
    shutil.copytree(EXAMPLE, outside / "private")
    (runs / "way-out").symlink_to(outside)
    (runs / "inside" / "also").symlink_to(outside / "private")
    with serving(tmp_path, runs) as served:
        assert until(lambda: '"state":"ready"' in served.ask("/api/v1/runs")[2])
        text = served.ask("/api/v1/runs")[2]
        assert "inside" in text
        assert "private" not in text
        assert "way-out" not in text


@needs_web
def test_a_token_is_asked_for_by_pages_answers_and_assets(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with serving(tmp_path, EXAMPLE, "--token-file", file) as served:
        token = file.read_text().strip()
        for path in ("/", "/api/v1/runs", "/api/v1/openapi.json", f"{ASSETS}/nicegui.js", "/favicon.ico"):
            assert served.ask(path)[0] == 401, path
        assert served.ask("/api/v1/runs", Authorization=f"Bearer {token}")[0] == 200
        status, headers, _ = served.ask(f"/?token={token}", Accept="text/html")
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        page = served.ask("/", Cookie=cookie, Accept="text/html")[2]
        assets = re.findall(r'(?:src|href)="(/[^"]+)"', page)
        assert assets
        for path in assets:
            assert served.ask(path)[0] == 401, path
            assert served.ask(path, Cookie=cookie)[0] == 200, path
        err = served.end()[2]
    assert "wrote a new token" in err
    assert token not in err
    assert token not in served.url


@needs_web
def test_what_fails_is_a_line_here_and_a_page_there(tmp_path: Path) -> None:
    broken = (
        "import stepscope.web.catalogue as c, stepscope.web.ui.pages.runs as p\n"
        "def fails(*_): raise RuntimeError('a secret')\nc.Catalogue.entries = p.build = fails"
    )
    for more in ((), ("--debug",)):
        with serving(tmp_path, EXAMPLE, *more, code=broken) as served:
            for path, kind in (("/", "text/html"), ("/api/v1/runs", "*/*")):
                status, headers, text = served.ask(path, Accept=kind)
                assert status == 500, path
                assert "a secret" not in text
                assert "Traceback" not in text
                assert headers["content-security-policy"]
            assert served.ask("/api/v1/runs", Accept="*/*")[1]["content-type"] == "application/problem+json"
            code, _, err = served.end()
        assert code == 0
        assert "stepscope: GET / failed: RuntimeError: a secret" in err
        assert ("Traceback" in err) == bool(more)


@needs_web
def test_malformed_messages_of_a_socket_cost_nobody_else_anything(tmp_path: Path) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with serving(tmp_path, EXAMPLE) as served:
        page = served.ask(Accept="text/html")[2]
        found = re.search(r"client_id.{1,8}?([0-9a-f-]{36})", page)
        assert found is not None
        query = "EIO=4&transport=websocket&implicit_handshake=true&tab_id=t&document_id=d&next_message_id=0"
        address = f"ws://127.0.0.1:{served.port}/_nicegui_ws/socket.io/?{query}&client_id={found[1]}"
        for text in (
            "42" + "[" * 100_000,
            "42[",
            '42["event",5]',
            '42["event",{"client_id":"x"}]',
            "7",
            "\0",
            "451-[]",
        ):
            with connect(address) as client:
                assert str(client.recv()).startswith("0{")
                client.send("40")
                assert str(client.recv()).startswith("40{")
                try:
                    client.send(text)
                    client.recv(timeout=0.3)
                except (ConnectionClosed, TimeoutError):
                    pass
        assert served.ask(Accept="text/html")[0] == 200
        err = served.end()[2]
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 5, err


@needs_web
def test_ctrl_c_and_sigterm_end_it_at_once_with_open_pages_and_questions(tmp_path: Path) -> None:
    for number, expected in ((signal.SIGINT, 0), (signal.SIGTERM, 143)):
        with serving(tmp_path, EXAMPLE) as served:
            open_one = socket.create_connection(("127.0.0.1", served.port))
            half = socket.create_connection(("127.0.0.1", served.port))
            half.sendall(b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1")
            assert served.ask()[0] == 200
            code, seconds, err = served.end(number)
            open_one.close()
            half.close()
        assert code == expected
        assert seconds < 10
        assert "Traceback" not in err


@needs_web
def test_a_question_that_takes_long_does_not_hold_up_the_end(tmp_path: Path) -> None:
    endless = (
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(1)\npool.submit(time.sleep, 300)"
    )
    with serving(tmp_path, EXAMPLE, code=endless) as served:
        code, seconds, _ = served.end()
    assert code == 0
    assert seconds < 15


@needs_web
def test_a_file_is_a_root_of_one(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    shutil.copy(next(Path(EXAMPLE).rglob("*.json*")), file)
    with serving(tmp_path, file) as served:
        assert until(lambda: '"id":' in served.ask("/api/v1/runs")[2])


# What is refused before anything is loaded


def test_a_directory_that_is_missing_is_named(capfd: Any, tmp_path: Path) -> None:
    err = printed(capfd, "serve", tmp_path / "none", code=2)
    assert "none: no such file or directory" in err


def test_a_directory_must_be_given(capfd: Any) -> None:
    assert main(["serve"]) == 2
    assert "DIR" in capfd.readouterr().err


def test_a_port_in_use_is_named(capfd: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        err = printed(capfd, "serve", EXAMPLE, "--port", port, code=2)
    assert f"--port {port}: this port is in use" in err


def test_an_address_for_others_needs_a_token(capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPSCOPE_TOKEN", raising=False)
    err = printed(capfd, "serve", EXAMPLE, "--host", "0.0.0.0", "--port", free_port(), code=2)
    assert "clients must give a token" in err
    err = printed(capfd, "serve", EXAMPLE, "--host", "0.0.0.0", "--token", "short", code=2)
    assert "at least 16" in err


def test_what_is_refused_creates_no_token(capfd: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    printed(capfd, "serve", EXAMPLE, "--token-file", file, "--port", 70_000, code=2)
    assert not file.exists()


def test_a_missing_package_is_named(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nicegui", None)
    for name in ("OTEL_SDK_DISABLED", "FASTAPI_OTEL_AUTO_CONFIGURE"):
        monkeypatch.setenv(name, "")
    assert "pip install 'stepscope[web]'" in printed(capfd, "serve", EXAMPLE, "--port", free_port(), code=2)


def test_the_help_names_what_can_be_chosen(capfd: Any) -> None:
    out = printed(capfd, "serve", "--help")
    for word in ("DIR...", "--host", "--port", "--token-file", "--token", "--allow-host", "--open", "--no-store"):
        assert word in out
