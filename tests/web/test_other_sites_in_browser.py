"""What pages of other sites can do to the server in a real browser, and how one signs in there."""

from __future__ import annotations

import importlib.util
import json
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import EXAMPLE
from tests.web.served import ASSETS, Served, serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOKEN = "0123456789abcdef-token"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None
    or shutil.which("chromedriver") is None
    or any(importlib.util.find_spec(name) is None for name in ("selenium", "nicegui")),
    reason="needs chromium, chromedriver and the extra `browser-tests`",
)

ATTACKS = """<!doctype html><title>another site</title><body><a id="link" href="TARGET/?search=x">link</a><script>
const results = {}, target = 'TARGET';
const attempt = async (name, made) => {
  try { results[name] = String(await made()); } catch (error) { results[name] = 'refused'; }
};
const loaded = (tag, path) => new Promise((done, failed) => {
  const one = document.createElement(tag);
  one.onload = () => done('loaded');
  one.onerror = failed;
  one.src = target + path;
  document.body.append(one);
});
(async () => {
  await attempt('read', async () => (await fetch(target + '/api/v1/runs', {credentials: 'include'})).text());
  const blind = {mode: 'no-cors', credentials: 'include'};
  await attempt('send', async () => (await fetch(target + '/api/v1/runs', blind)).type);
  const posted = {...blind, method: 'POST', body: 'x'};
  await attempt('change', async () => (await fetch(target + '/api/v1/runs', posted)).type);
  await attempt('socket', () => new Promise((done, failed) => {
    const one = new WebSocket(target.replace('http', 'ws') + '/_nicegui_ws/socket.io/?EIO=4&transport=websocket');
    one.onopen = () => done('open');
    one.onerror = failed;
  }));
  await attempt('image', () => loaded('img', '/favicon.ico'));
  await attempt('script', () => loaded('script', 'ASSETS/socket.io.min.js'));
  const frame = document.createElement('iframe');
  frame.src = target;
  document.body.append(frame);
  window.results = results;
})();
</script>"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the server, which all tests here share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def strict() -> None:
    """Rules run in the server."""


@pytest.fixture(scope="module")
def server(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for a token."""
    environment = {"STEPSCOPE_TOKEN": TOKEN, "STEPSCOPE_CACHE": str(cache)}
    with serving(tmp_path_factory.mktemp("here"), EXAMPLE, **environment) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser in which the name `evil.example` leads to this machine."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(flag)
    options.add_argument("--host-resolver-rules=MAP evil.example 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def other_site(server: Served) -> Iterator[int]:
    """The port of a site whose only page attacks the server."""
    page = ATTACKS.replace("TARGET", f"http://127.0.0.1:{server.port}").replace("ASSETS", ASSETS).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield site.server_port
    site.shutdown()
    site.server_close()


def until(met: Any, seconds: float = 60) -> bool:
    """Whether something is the case before some time has passed."""
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def signed_in(browser: Any, server: Served, path: str = "/") -> None:
    """Open a page, and give the token if it is asked for."""
    browser.get(f"http://127.0.0.1:{server.port}{path}")
    if browser.find_elements("id", "token"):
        browser.find_element("id", "token").send_keys(TOKEN)
        browser.find_element("css selector", "button").click()
    assert until(lambda: browser.execute_script("return !!window.did_handshake"))


def test_one_signs_in_with_the_token_and_lands_where_one_wanted(browser: Any, server: Served) -> None:
    browser.get(f"http://127.0.0.1:{server.port}/?search=job&lang=zh")
    assert "登录" in browser.title
    browser.find_element("id", "token").send_keys("wrong-wrong-wrong-wrong")
    browser.find_element("css selector", "button").click()
    assert until(lambda: browser.find_elements("css selector", "[role=alert]"))
    browser.find_element("id", "token").send_keys(TOKEN)
    browser.find_element("css selector", "button").click()
    assert until(lambda: browser.execute_script("return !!window.did_handshake"))
    assert browser.current_url.endswith("/?search=job&lang=zh")
    (cookie,) = [each for each in browser.get_cookies() if each["name"].startswith("stepscope_session")]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert TOKEN not in json.dumps(browser.get_cookies())


def test_a_page_works_under_its_policy_without_errors(browser: Any, server: Served) -> None:
    signed_in(browser, server)
    browser.get_log("browser")
    browser.get(f"http://127.0.0.1:{server.port}/")
    assert until(lambda: browser.execute_script("return !!window.did_handshake"))
    time.sleep(1)
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []
    # no script that came in as text runs, neither in a handler nor as an element
    browser.execute_script(
        "window.ran = 0; document.body.insertAdjacentHTML('beforeend', '<img src=/none onerror=\"window.ran = 1\">');"
        "const one = document.createElement('script'); one.textContent = 'window.ran = 2'; document.body.append(one);"
    )
    time.sleep(1)
    assert browser.execute_script("return window.ran") == 0


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1"])
def test_a_page_of_another_site_reaches_nothing(browser: Any, server: Served, other_site: int, name: str) -> None:
    signed_in(browser, server)
    browser.get(f"http://{name}:{other_site}/")
    assert until(lambda: browser.execute_script("return !!window.results"))
    wanted = dict.fromkeys(("read", "send", "change", "socket", "image", "script"), "refused")
    assert browser.execute_script("return window.results") == wanted
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    assert "stepscope" not in browser.page_source.lower() or "ERR_BLOCKED" in browser.page_source
    browser.switch_to.default_content()

    browser.find_element("id", "link").click()  # a link opens the page, signed in
    assert until(lambda: browser.execute_script("return !!window.did_handshake"))
    assert browser.current_url.endswith("/?search=x")


def test_a_name_that_another_site_points_here_shows_nothing(browser: Any, server: Served) -> None:
    browser.get(f"http://evil.example:{server.port}/")
    assert "does not answer to the name evil.example" in browser.page_source
