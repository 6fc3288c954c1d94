"""Where the server listens, what it says if it cannot, and what it prints when something fails."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.web import serving
from stepscope.web.logs import NAMES, OF_CLIENTS, report_failures
from stepscope.web.serving import Listener, serve
from stepscope.web.settings import Settings

TOKEN = "a-token-of-20-letters"


def settings(**more: Any) -> Settings:
    """Settings of a server of this directory on any free port."""
    return Settings((Path(),), **{"port": 0, **more})


def test_the_address_is_that_of_the_first_page() -> None:
    with Listener(settings()) as listener:
        port = listener.settings.port
        assert port > 0
        assert listener.url == f"http://127.0.0.1:{port}/"
        assert not listener.is_exposed
    with Listener(settings(host="0.0.0.0", token=TOKEN)) as listener:
        assert listener.url == f"http://{socket.gethostname()}:{listener.settings.port}/"
        assert listener.is_exposed


def test_an_address_of_the_sixth_version_is_in_brackets() -> None:
    try:
        listener = Listener(settings(host="::1"))
    except StepscopeError:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert listener.url.startswith("http://[::1]:")
        assert not listener.is_exposed


def test_a_port_in_use_is_named_with_one_that_is_free() -> None:
    with Listener(settings()) as listener:
        port = listener.settings.port
        with pytest.raises(StepscopeError, match=f"--port {port}: this port is in use") as caught:
            Listener(settings(port=port))
        free = int(str(caught.value).partition("e.g. --port ")[2].partition(",")[0])
        with Listener(settings(port=free)) as other:
            assert other.settings.port == free


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StepscopeError, match=r"--host 192\.0\.2\.1: this machine does not have this address"):
        Listener(settings(host="192.0.2.1", token=TOKEN))


def test_a_name_that_means_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(StepscopeError, match="--host nowhere: this is not an address of this machine"):
        Listener(settings(host="nowhere", token=TOKEN))


def test_a_localhost_that_others_reach_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("0.0.0.0", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(StepscopeError, match="clients must give a token"):
        Listener(settings(host="localhost"))
    with Listener(settings(host="localhost", token=TOKEN)) as listener:
        assert listener.is_exposed


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may listen anywhere")
def test_a_port_of_the_system_is_refused() -> None:
    with pytest.raises(StepscopeError, match="--port 80: this user may not listen"):
        Listener(settings(port=80))


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nicegui", None)
    for name in ("OTEL_SDK_DISABLED", "FASTAPI_OTEL_AUTO_CONFIGURE"):
        monkeypatch.setenv(name, "")  # put back afterwards
    with Listener(settings()) as listener, pytest.raises(StepscopeError, match=r"pip install 'stepscope\[web\]'"):
        serve(listener)


def test_modules_are_hidden_for_a_while_alone() -> None:
    with serving._without("wave", "json"):
        with pytest.raises(ImportError):
            import wave
        import json

        assert json.loads("1") == 1  # what is loaded stays
    import wave  # noqa: F401


@pytest.fixture
def loggers() -> Any:
    """All loggers as they were, afterwards."""
    names = (*NAMES, *OF_CLIENTS, "stepscope.web")
    kept = [(one := logging.getLogger(name), one.handlers, one.propagate, one.disabled, one.level) for name in names]
    yield
    for one, handlers, propagate, disabled, level in kept:
        one.handlers, one.propagate, one.disabled = handlers, propagate, disabled
        one.setLevel(level)


def failed(logger: str, message: object = "GET / failed") -> None:
    """Log an error as libraries do."""
    try:
        raise ValueError("bad\nvalue" + "x" * 1000)
    except ValueError as error:
        if isinstance(message, str):
            logging.getLogger(logger).error(message, exc_info=error)
        else:
            logging.getLogger(logger).exception(error)


@pytest.mark.parametrize(("logger", "message"), [("stepscope.web", "GET / failed"), ("nicegui", None)])
def test_a_failure_is_a_line(loggers: None, capfd: Any, logger: str, message: str | None) -> None:
    report_failures(debug=False)
    failed(logger, message)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"stepscope: {message or 'a page failed'}: ValueError: bad value")
    assert line.endswith("(--debug shows where)")
    assert len(line) < 600


def test_a_failure_shows_where_if_asked(loggers: None, capfd: Any) -> None:
    report_failures(debug=True)
    failed("nicegui", None)
    assert 'raise ValueError("bad' in capfd.readouterr().err


@pytest.mark.parametrize("name", OF_CLIENTS)
def test_what_a_client_sends_is_no_failure(loggers: None, capfd: Any, name: str) -> None:
    report_failures(debug=False)
    failed(name, "message async handler error")
    assert capfd.readouterr().err == ""
    report_failures(debug=True)
    failed(name, "message async handler error")
    assert "message async handler error" in capfd.readouterr().err


def test_what_only_happens_is_not_printed(loggers: None, capfd: Any) -> None:
    report_failures(debug=False)
    logging.getLogger("nicegui").warning("http://x/y not found")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").error("Cancel %s running task(s), timeout graceful shutdown exceeded", 3)
    assert capfd.readouterr().err == ""
