"""A running job as a user watches it: steps, the slow rank, a switch, a profile; and what goes away and comes back."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.web.browser.site import Pages, browsing, missing, serving

LACKING = missing() or ("" if importlib.util.find_spec("grpc") else "grpc")
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"missing: {LACKING}")

TOKEN = "a-token-for-tests-only"

CELLS = """
const map = document.querySelector('#drawn-live-map .js-plotly-plot');
return map ? map.data[0].z.map((row) => row.filter((cell) => cell !== null).length) : [];
"""
"""How many steps of each rank the map shows."""

SAID = "return document.querySelector('#main')?.innerText ?? ''"
"""What the page says, asked at once: it makes parts of itself anew every second."""

RUN_OF_PROFILE = "return document.querySelector('.profiles a')?.href"
"""Where the run of a profile is shown."""

PRESS = """
const button = [...document.querySelectorAll(arguments[0])].find((each) => each.innerText === arguments[1]);
button?.click();
return Boolean(button);
"""
"""Press a button, at once as well."""

BLAMED = "return document.querySelector('tr.blamed td')?.innerText"
"""The rank in the first row that stands out."""

NEWEST = "return document.querySelector('#drawn-live-map .js-plotly-plot').data[0].x.at(-1)"
"""The newest step of the map."""

LINES = (
    "return document.querySelector('#drawn-live-lines .js-plotly-plot').data.map((line) => [line.name, line.y.at(-1)])"
)
"""The last time of each rank."""


@dataclass
class Watched:
    """A job with its page."""

    job: Any
    pages: Pages

    def says(self, text: str, seconds: float = 60) -> bool:
        """Whether the page comes to say something."""
        return self.pages.until(lambda: text in self.pages.driver.execute_script(SAID), seconds)

    def do(self, title: str, within: str) -> None:
        """Press a button of a part of the page, and confirm."""
        pressed = self.pages.driver.execute_script(PRESS, f"{within} button", title)
        assert pressed, self.pages.text()
        assert self.pages.until(lambda: bool(self.pages.every("#live-yes"))), self.pages.text()
        assert self.pages.driver.execute_script(PRESS, "#live-yes", "Do it")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    from tests.web.browser.live_job import watched_job

    root = tmp_path_factory.mktemp("watched") / "records"
    root.mkdir()
    cache = tmp_path_factory.mktemp("cache")
    with (
        watched_job(root) as job,
        serving(root, cache, "--live", f"127.0.0.1:{job.port}", token=TOKEN) as site,
        browsing(site) as pages,
    ):
        pages.open(f"/live?token={TOKEN}")
        yield Watched(job, pages)
        assert pages.errors() == []
        assert pages.outside() == []


def test_steps_of_all_ranks_come_in_and_fill_the_map(watched: Watched) -> None:
    pages = watched.pages

    assert watched.says("Job demo: 4 of 4 ranks")
    assert pages.until(lambda: min(pages.driver.execute_script(CELLS), default=0) > 0)
    assert len(pages.driver.execute_script(CELLS)) == len(watched.job.workers)
    newest = pages.driver.execute_script(NEWEST)
    assert pages.until(lambda: pages.driver.execute_script(NEWEST) > newest), "further steps come by themselves"


def test_the_slow_rank_is_named_and_stands_out(watched: Watched) -> None:
    pages = watched.pages

    assert watched.says("Rank 2 computes slowly"), pages.text()
    assert pages.until(lambda: pages.driver.execute_script(BLAMED) == "2")
    pages.open("/live?measure=forward")
    assert pages.until(lambda: len(pages.driver.execute_script(LINES)) == len(watched.job.workers))
    last = dict(pages.driver.execute_script(LINES))
    assert last["rank 2"] > 1.5 * last["rank 0"]


def test_a_switch_is_thrown_and_acknowledged(watched: Watched) -> None:
    assert watched.says("communication: off")

    watched.do("Switch on", ".switch-list")

    assert watched.says("Switched: applied by 4 ranks."), watched.pages.text()
    assert watched.says("Revision 1: applied by 4 of 4 ranks, requested by stepscope serve.")
    assert watched.says("communication: on")
    assert all("communication" in one.switches for one in watched.job.workers.values())


def test_a_profile_of_the_slow_rank_is_said_where_it_is_and_becomes_a_run(watched: Watched) -> None:
    pages = watched.pages

    watched.do("Profile rank 2, 8 steps", ".live-actions")

    assert watched.says("Rank 2: its profile is in "), pages.text()
    place = next(iter((watched.job.records / "demo" / "2" / "captures").iterdir()))
    assert watched.says(str(place))
    assert pages.until(lambda: bool(pages.driver.execute_script(RUN_OF_PROFILE)), 30), pages.text()
    pages.driver.get(pages.driver.execute_script(RUN_OF_PROFILE))
    pages.settle()
    assert watched.says(str(place), 60), pages.text()
    assert "could not be shown" not in pages.text()


def test_a_manager_that_dies_is_said_and_the_page_goes_on_when_it_is_back(watched: Watched) -> None:
    pages, job = watched.pages, watched.job
    job.manager.send_signal(signal.SIGSTOP)  # it hangs, and then it dies
    pages.open("/live")
    before = pages.driver.execute_script(CELLS)

    job.kill_manager()
    job.end_rank(3)
    assert watched.says("no manager answers (Connection refused)")
    assert min(pages.driver.execute_script(CELLS)) >= min(before) > 0, "what was known stays"
    job.start_manager()

    assert pages.until(lambda: "no manager answers" not in pages.driver.execute_script(SAID), 30)
    assert watched.says("Job demo: 3 of 4 ranks"), "one has died meanwhile"
    assert watched.says("1 of 4 ranks have not registered.")
    assert watched.says("Revision 1: applied by 3 of 3 ranks"), "the switches are as they were"


def test_the_end_of_the_job_is_said(watched: Watched) -> None:
    for rank in range(3):
        watched.job.end_rank(rank)
    assert watched.says("No rank takes part any more: the job has ended"), watched.pages.text()
    assert watched.says("No longer taking part: ranks 0-2.")
    assert watched.says("no rank takes part; those that join follow it")
    assert not watched.pages.every(".live-actions section:nth-child(2) button"), "nobody is there to profile"
