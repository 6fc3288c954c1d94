"""Timeline, query, what-if and live pages in a real browser: what a user clicks, and where that leads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import polars as pl
import pytest

from stepscope.run import open_run
from tests.web.browser.site import EXAMPLE, Pages

SLOW_S = 120
"""Seconds that the UI of timelines may take to start."""


def in_frame(pages: Pages, script: str) -> Any:
    """The value of an expression in the page around the Perfetto UI."""
    return pages.driver.execute_script(
        f"const page = document.getElementById('timeline-frame')?.contentWindow; return page ? {script} : null"
    )


def opened(pages: Pages) -> bool:
    """Wait until the timeline is open or cannot be opened; whether it is open."""
    assert pages.until(lambda: bool(in_frame(pages, "page.document.body?.dataset.state")), SLOW_S)
    return bool(in_frame(pages, "page.document.body.dataset.state") == "open")


def visible_ns(pages: Pages) -> tuple[int, int]:
    """What of the timeline is shown, on its clock."""
    window = "page.frames[0].app.trace.timeline.visibleWindow"
    start, length = in_frame(pages, f"[String({window}.start.integral), {window}.duration]")
    return int(start), int(start) + round(length)


def asked(pages: Pages, sql: str) -> int:
    """The first number that a query on the open timeline gives."""
    script = (
        "const page = document.getElementById('timeline-frame').contentWindow, done = arguments[1];"
        "page.query(arguments[0]).then((rows) => done(Number(Object.values(rows[0])[0])))"
    )
    return int(pages.driver.execute_async_script(script, sql))


def of(pages: Pages, name: str, page: str, query: str = "") -> str:
    return f"/runs/{pages.site.identity(name)}/{page}{query and '?'}{query}"


@pytest.mark.parametrize("name", ["gloo", "ascend_text", "classic"])
def test_a_timeline_opens_in_the_page(pages: Pages, name: str) -> None:
    pages.open(of(pages, name, "timeline"), SLOW_S)

    assert opened(pages)
    assert "events on" in pages.text("#timeline")
    assert in_frame(pages, "page.frames[0].app.trace.workspace.flatTracks.length") > 3


def test_a_timeline_opens_at_the_place_of_its_address(pages: Pages) -> None:
    steps = open_run(EXAMPLE).table("steps").filter(pl.col("rank") == 1).sort("step").collect()
    start, end = int(steps["start_ns"][1]), int(steps["end_ns"][1])

    pages.open(of(pages, "gloo", "timeline", f"rank=1&start_ns={start}&end_ns={end}"), SLOW_S)

    assert opened(pages)
    assert in_frame(pages, "page.document.getElementById('state').className") == ""
    first, last = visible_ns(pages)
    length = end - start
    assert length <= last - first <= 2 * length
    within = f"ts >= {first} and ts + dur <= {last} and dur = {length}"
    assert asked(pages, f"select count(*) as n from slice where {within}") >= 1, "the step itself is in the middle"


def test_a_finding_leads_to_its_place(pages: Pages) -> None:
    pages.open(of(pages, "gloo", "timeline"), SLOW_S)
    assert opened(pages)

    pages.click("#places a")

    assert opened(pages)
    query = parse_qs(urlsplit(pages.address).query)
    assert {"start_ns", "end_ns"} <= set(query)
    first, last = visible_ns(pages)
    assert last - first < 2 * (int(query["end_ns"][0]) - int(query["start_ns"][0]))


def test_what_a_timeline_shows_is_chosen_and_downloaded(pages: Pages, downloads: Path) -> None:
    pages.open(of(pages, "gloo", "timeline", "kind=summary&ranks=0-1"), SLOW_S)
    assert opened(pages)

    link = next(each for each in pages.every("#timeline .downloads a") if each.text == "json")
    assert parse_qs(urlsplit(link.get_attribute("href")).query)["ranks"] == ["0-1"]
    link.click()

    assert pages.until(lambda: bool(list(downloads.glob("*.json"))))
    assert json.loads(next(downloads.glob("*.json")).read_text())["traceEvents"]


def test_a_query_runs_and_is_sorted_drawn_and_downloaded(pages: Pages, downloads: Path) -> None:
    pages.open(of(pages, "gloo", "query"))
    from selenium.webdriver.common.keys import Keys

    pages.one("#sql").send_keys("SELECT rank, COUNT(*) AS n FROM steps GROUP BY rank", Keys.CONTROL, Keys.ENTER)
    assert pages.until(lambda: bool(pages.every("#result tbody tr")))
    pages.driver.execute_script(
        "const field = document.getElementById('field-chart.kind'); field.value = 'bar';"
        "field.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    assert pages.until(lambda: bool(pages.every("#drawn-query .main-svg")))
    pages.click("#result th:first-child a.sort")

    query = parse_qs(urlsplit(pages.address).query)
    assert query["chart.kind"] == ["bar"], "what another part shows stays"
    expected = open_run(EXAMPLE).query("SELECT rank, COUNT(*) AS n FROM steps GROUP BY rank ORDER BY rank DESC")
    assert pages.column("result", 1) == [str(rank) for rank in expected["rank"]]
    next(each for each in pages.every("[data-post]") if each.text == "CSV").click()
    assert pages.until(lambda: bool(list(downloads.glob("*.csv"))))
    assert (
        pl.read_csv(next(downloads.glob("*.csv"))).sort("rank")["n"].to_list() == expected.sort("rank")["n"].to_list()
    )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "is not a function that a query may call"),
        ("SELECT * FROM scan_parquet('x')", "is not a function that a query may call"),
        ("SELECT * FROM '/etc/passwd'", "was not found"),
        ("COPY steps TO '/tmp/x'", "only SELECT"),
        ("CREATE TABLE x AS SELECT 1", "only SELECT"),
        ("SELECT nothing FROM steps", "Columns: steps("),
        ("SELEC", "only SELECT"),
    ],
)
def test_what_a_query_may_not_do_is_said(pages: Pages, sql: str, said: str) -> None:
    pages.open(of(pages, "gloo", "query", f"sql={quote(sql)}"))

    assert said in pages.text("#result")
    assert "root:" not in pages.text("#result")


def test_moments_and_texts_are_shown_whatever_they_are_called(pages: Pages) -> None:
    sql = "SELECT start_ns, 'a text' AS wait_ns, name AS part_ratio, step AS size_bytes FROM slices LIMIT 3"

    pages.open(of(pages, "gloo", "query", f"sql={quote(sql)}"))

    expected = open_run(EXAMPLE).query(sql)
    assert pages.column("result", 1) == [str(moment) for moment in expected["start_ns"]]
    assert pages.column("result", 2) == ["a text"] * 3


def test_names_of_columns_are_put_into_the_query(pages: Pages) -> None:
    pages.open(of(pages, "gloo", "query"))

    pages.one("#table-of-steps summary").click()
    pages.one("#table-of-steps button.name").click()

    assert pages.one("#sql").get_attribute("value") == "rank"


def test_ticked_causes_shorten_the_job(pages: Pages) -> None:
    pages.open(of(pages, "gloo", "what-if"))
    assert "Tick causes" in pages.text("#job-time")

    pages.click("#tick-1")
    shorter = pages.text("#job-time")
    address = pages.address
    pages.open(address)

    assert "instead of" in shorter
    assert "without=" in address
    assert pages.text("#job-time") == shorter, "a change is in the address"
    assert pages.one("#tick-1").get_attribute("aria-checked") == "true"
    pages.click("#tick-1")
    assert "Tick causes" in pages.text("#job-time")


def test_without_a_manager_the_live_page_says_how_to_trace(pages: Pages) -> None:
    pages.driver.get(f"{pages.site.url}/live")

    assert pages.until(lambda: "stepscope live manager" in pages.text("main"))


@pytest.mark.parametrize("width", [1280, 1800])
@pytest.mark.parametrize("page", ["timeline", "query", "what-if"])
def test_pages_fit_their_windows(pages: Pages, page: str, width: int) -> None:
    pages.driver.set_window_size(width, 1000)
    try:
        pages.open(of(pages, "gloo", page, "lang=zh&theme=dark"), SLOW_S)
        wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert pages.driver.execute_script(wide)
    finally:
        pages.driver.set_window_size(1280, 1000)
