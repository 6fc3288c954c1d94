"""`stepscope serve` over some runs, as a process of its own, and pages of it in a headless Chromium."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.timeline.viewer import browser as chromium

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "ddp_gloo_4rank_slow_loader"
SHARED = ROOT.parent / "shared" / "data"

FILLED = """
const panels = [...document.querySelectorAll('.panel')], plots = [...document.querySelectorAll('.plot')];
return Boolean(document.querySelector('main h1')) && panels.every((panel) => panel.dataset.state === 'filled')
  && !document.querySelector('.panel .computing') && Boolean(window.socket && window.socket.connected)
  && plots.every((plot) => plot.querySelector('.main-svg'));
"""
"""Whether all of a page is there: nothing is being computed, the websocket is open, figures are drawn."""


def missing() -> str:
    """What is missing to try pages in a browser; empty if nothing is."""
    modules = [name for name in ("nicegui",) if importlib.util.find_spec(name) is None]
    return ", ".join(each for each in (*modules, chromium.missing()) if each)


@dataclass
class Site:
    """A server that is running.

    Args:
        url: Address of its first page, without `/` at the end.
        root: The directory whose runs it shows.
        token: What it asks for; empty for nothing.
    """

    url: str
    root: Path
    process: subprocess.Popen[str]
    token: str = ""

    def runs(self) -> dict[str, dict[str, Any]]:
        """The runs by name, as the API lists them."""
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/api/v1/runs", headers=given)) as answer:
            return {run["name"]: run for run in json.load(answer)["runs"]}

    def identity(self, name: str) -> str:
        """The id of a run."""
        return str(self.runs()[name]["id"])

    def wait(self, holds: Callable[[dict[str, dict[str, Any]]], bool], seconds: float = 120) -> None:
        """Wait until the list of runs is as expected."""
        end = time.monotonic() + seconds
        while not holds(runs := self.runs()):
            assert time.monotonic() < end, {name: (run["state"], run["problem"]) for name, run in runs.items()}
            time.sleep(0.2)

    def wait_ready(self, *names: str) -> None:
        """Wait until runs are read and analysed; all there are by default."""
        self.wait(lambda runs: bool(runs) and all(runs[name]["state"] == "ready" for name in names or runs))


@contextmanager
def serving(root: Path, cache: Path, *options: str, token: str = "") -> Iterator[Site]:
    """A server of the runs below a directory, on any free port."""
    environment = {**os.environ, "STEPSCOPE_CACHE": str(cache), "PYTHONUNBUFFERED": "1", "STEPSCOPE_TOKEN": token}
    command = [sys.executable, "-m", "stepscope", "serve", str(root), "--port", "0", "--debug", *options]
    log = cache.with_name(f"{cache.name}.log")
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), log.read_text()
        yield Site(address.rstrip("/"), root, process, token)
    finally:
        process.terminate()
        process.wait(20)
    told = log.read_text()
    assert "Traceback" not in told, told


class Pages:
    """A browser on the pages of a site."""

    def __init__(self, page: chromium.Page, site: Site) -> None:
        self.driver, self.site, self._page = page.driver, site, page

    def open(self, address: str, seconds: float = 60) -> None:
        """Go to a page and wait until all of it is there."""
        self.driver.get(self.site.url + address)
        self.settle(seconds)

    def settle(self, seconds: float = 60) -> None:
        """Wait until all of the page is there."""
        assert self.until(lambda: bool(self.driver.execute_script(FILLED)), seconds), self.text()[:2000]

    def until(self, holds: Callable[[], bool], seconds: float = 20) -> bool:
        """Wait until something holds; False if it does not within that time."""
        return self._page.until(holds, seconds)

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector, and wait until what follows is there."""
        element = self.one(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()
        time.sleep(0.3)
        self.settle()

    def one(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def every(self, selector: str) -> list[Any]:
        """All elements of a CSS selector."""
        return list(self.driver.find_elements("css selector", selector))

    def text(self, selector: str = "body") -> str:
        """The visible text of an element."""
        return str(self.one(selector).text)

    def column(self, table: str, number: int) -> list[str]:
        """The texts of a column, from 1, of the first table of a section."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)"  # also what is hidden
        )
        selector = f"#{table} figure.table:first-of-type tbody td:nth-child({number})"
        return list(self.driver.execute_script(script, selector))

    def values(self, table: str, number: int) -> list[float]:
        """The numbers that a column is sorted by."""
        script = "return [...document.querySelectorAll(arguments[0])].map((cell) => Number(cell.dataset.v))"
        selector = f"#{table} figure.table:first-of-type tbody td:nth-child({number})"
        return list(self.driver.execute_script(script, selector))

    @property
    def address(self) -> str:
        """Path and query of the page."""
        parts = urlsplit(self.driver.current_url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def errors(self) -> list[str]:
        """What the console says is wrong since the last call, but for the Perfetto UI, which tries what it may not."""
        told = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [text for text in told if "/perfetto/" not in text and "/live_reload" not in text]

    def outside(self) -> list[str]:
        """Addresses on other machines that were asked since the last call, but those that our policy kept from it."""
        return [url for url in self._page.sent_requests() if not url.startswith(self.site.url)]

    def screenshot(self, target: Path) -> None:
        """Write a picture of the page."""
        self._page.screenshot(target)


@contextmanager
def browsing(site: Site, size: tuple[int, int] = (1280, 1000)) -> Iterator[Pages]:
    """A headless browser with a new profile."""
    with chromium.browser(size=size) as page:
        yield Pages(page, site)


def copied(names: Sequence[str], target: Path) -> list[str]:
    """Copy recordings from beside the repository into a directory; the names of those that are there."""
    found = [name for name in names if (SHARED / name).exists()]
    for name in found:
        shutil.copytree(SHARED / name, target / Path(name).name)
    return [Path(name).name for name in found]
