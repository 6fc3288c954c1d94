"""Pages as a user sees them: each is filled without an error, and sorts, filters, clicks and links do what they say."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.web.browser.site import Pages, Site, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"missing: {missing()}")

ENTER, TAB = "\ue007", "\ue004"
"""Keys, as the driver's protocol has them."""


def _pages(*, main: bool) -> list[str]:
    from stepscope.web.ui.site_map import site_map

    return [page.name for page in site_map() if (page.group in ("run", "rank", "cluster")) == main]


def _run(site: Site, name: str) -> str:
    if name not in site.runs():
        pytest.skip(f"{name} lies beside the repository, and is not there")
    return f"/runs/{site.identity(name)}"


def _checked(pages: Pages, address: str) -> None:
    pages.open(address)
    assert pages.text("#main h1")
    assert "could not be shown" not in pages.text()
    assert pages.errors() == [], address


@pytest.mark.parametrize("name", ["ascend_text", "classic", "synthetic_dp4", "dlrm_8rank_v100"])
def test_each_main_page_is_filled(pages: Pages, site: Site, name: str) -> None:
    run = _run(site, name)
    for page in _pages(main=True):
        _checked(pages, f"{run}/{page}" if page else run)


def test_each_further_page_is_filled(pages: Pages, site: Site) -> None:
    run = _run(site, "gloo")
    for page in _pages(main=False):
        _checked(pages, f"{run}/{page}")


def test_a_page_is_sent_with_what_is_known(site: Site) -> None:
    def states() -> set[str]:
        with urllib.request.urlopen(f"{site.url}{_run(site, 'gloo')}/steps") as answer:
            return set(re.findall(r'"data-state":"(\w+)"', answer.read().decode()))

    tries = [states() for _ in range(5)]  # the first ones may have to compute it

    assert {"filled"} in tries


def test_a_page_is_not_given_up_while_the_server_is_busy(site: Site) -> None:
    from websockets.sync.client import connect

    address = f"{site.url}/_nicegui_ws/socket.io/?EIO=4&transport=websocket".replace("http:", "ws:")
    with connect(address, additional_headers={"Origin": site.url}) as socket:
        opened = json.loads(str(socket.recv(10)).removeprefix("0"))

    assert opened["pingTimeout"] >= 20_000


def test_a_search_without_rows_keeps_its_field_and_leads_back(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops?rank=1&operator_types.search=zzz")

    assert pages.one("#search-operator_types").get_attribute("value") == "zzz"
    assert "no row contains it" in pages.text("#table-operator_types-refused")
    assert "--search" not in pages.text("#main")
    pages.one("#table-operator_types-refused .empty a").click()
    assert pages.until(lambda: "zzz" not in pages.driver.current_url and pages.every("#operator_types tbody tr"))


def test_what_is_wrong_with_the_whole_page_is_said_once(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/steps?rank=77")

    assert pages.text("#main").count("no rank 77") == 1


@pytest.mark.parametrize(("language", "spoken"), [("en", "en"), ("zh", "zh-Hans")])
def test_a_page_has_one_main_part_and_says_its_language(pages: Pages, site: Site, language: str, spoken: str) -> None:
    pages.open(f"{_run(site, 'gloo')}/steps?lang={language}")

    assert [element.get_attribute("id") for element in pages.every("main")] == ["main"]
    assert pages.one("html").get_attribute("lang") == spoken
    assert len(pages.every("h1")) == 1


def test_the_overview_says_what_matters_first_and_each_finding_opens_its_evidence(pages: Pages, site: Site) -> None:
    pages.open(_run(site, "gloo"))

    text = pages.text("#main")
    assert "ank 2" in text[:400], "the verdict comes first"
    assert "waits for data" in text
    pages.one(".problem .evidence summary").click()
    assert pages.every(".problem .evidence[open] tbody tr")


def test_a_column_sorts_both_ways_and_the_address_says_so(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops?rank=2")
    heads = [head.text for head in pages.every("#operator_types thead th")]
    place = heads.index("total") + 1
    head = f"#operator_types thead th:nth-child({place}) a"

    pages.click(head)
    assert "operator_types.sort=-total_ns" in pages.address
    down = pages.values("operator_types", place)
    assert down == sorted(down, reverse=True)
    assert len(down) > 5
    assert pages.one(f"#operator_types thead th:nth-child({place})").get_attribute("aria-sort") == "descending"

    pages.click(head)
    up = pages.values("operator_types", place)
    assert up == sorted(up)
    assert up != down

    address = pages.address
    rows = pages.column("operator_types", 2)
    pages.open(address)
    assert pages.column("operator_types", 2) == rows, "the address alone shows the same"

    pages.driver.back()
    time.sleep(0.5)
    pages.settle()
    assert pages.values("operator_types", place) == down


def test_search_filter_pages_and_more_columns(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops")
    pages.one("#search-operator_types").send_keys("softmax", ENTER)
    pages.until(lambda: "search=softmax" in pages.address)
    pages.settle()
    found = pages.column("operator_types", 2)
    assert found
    assert all("softmax" in name.lower() for name in found)

    field = pages.one("#search-operator_types")
    field.clear()
    pages.one("#filter-operator_types").send_keys("total_ms > 20", ENTER)
    pages.until(lambda: "filter=" in pages.address and "search=" not in pages.address)
    pages.settle()
    heads = [head.text for head in pages.every("#operator_types thead th")]
    assert all(value > 20e6 for value in pages.values("operator_types", heads.index("total") + 1))

    pages.open(f"{_run(site, 'gloo')}/ops")
    first = [row.text for row in pages.every("#operator_types tbody tr")]
    pages.click("#next-operator_types")
    assert "operator_types.page=2" in pages.address
    second = [row.text for row in pages.every("#operator_types tbody tr")]
    assert second
    assert not set(second) & set(first)
    pages.click("#previous-operator_types")
    assert [row.text for row in pages.every("#operator_types tbody tr")] == first

    before = len(pages.every("#operator_instances thead th"))
    pages.click("#wide-operator_instances")
    assert len(pages.every("#operator_instances thead th")) > before


def test_a_wrong_filter_is_explained_and_the_rest_of_the_page_stays(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops?operator_types.filter={quote('nonsense >')}")

    assert "nonsense" in pages.text("#operator_types")
    assert "Traceback" not in pages.text()
    assert pages.every("#operator_instances tbody tr")


@pytest.mark.parametrize(
    "query", ["rank=99", "step=99999", "rank=x", "operator_types.page=9999", "operator_types.sort=no"]
)
def test_what_is_not_there_is_said(pages: Pages, site: Site, query: str) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops?{query}")

    assert "could not be shown" not in pages.text()
    assert pages.every(".empty"), "a sentence says what there is"


def test_pages_that_are_not_there_are_404(site: Site) -> None:
    for address in ("/runs/nothing", f"{_run(site, 'gloo')}/nothing", "/nothing"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(site.url + address)
        assert refused.value.code == 404


def test_a_click_on_a_curve_shows_that_step(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/steps")
    _click_point(pages, "step-parts", "path.point")

    assert pages.until(lambda: "step=" in pages.address)
    pages.settle()
    step = pages.address.partition("step=")[2].partition("&")[0]
    assert pages.one("#field-step").get_attribute("value") == step


def test_a_click_on_a_type_lists_its_operators(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops")
    _click_point(pages, "operator-types", ".bars .point path")

    assert pages.until(lambda: "operator_instances.filter" in pages.address)
    pages.settle()
    assert len(set(pages.column("operator_instances", 2))) == 1


def test_a_click_on_a_rank_opens_its_steps(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ranks")
    _click_point(pages, "rank-steps", ".bars .point path")

    assert pages.until(lambda: "/steps?rank=" in pages.address)
    pages.settle()
    assert pages.text("#main h1") == "Step trace"


def _click_point(pages: Pages, figure: str, selector: str) -> None:
    point = pages.one(f"#drawn-{figure} {selector}")
    pages.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", point)
    time.sleep(0.2)
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(pages.driver).move_to_element(point).pause(0.2).click().perform()


def test_chinese_and_dark_stay_from_page_to_page(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}?lang=zh&theme=dark")
    assert pages.text("#main h1") == "概览"
    assert _background(pages) < 100

    pages.open("/")
    assert pages.text("#main h1") == "运行"
    assert _background(pages) < 100

    pages.open("/?theme=light&lang=en")
    assert pages.text("#main h1") == "Runs"
    assert _background(pages) > 600


def _background(pages: Pages) -> int:
    """Sum of red, green and blue of the page."""
    colour = pages.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3])


def test_the_keyboard_reaches_what_the_mouse_does(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops")
    pages.one("body").send_keys(TAB)
    assert pages.driver.switch_to.active_element.get_attribute("class") == "skip"

    head = pages.one("#operator_types thead th:nth-child(4) a")
    identity = head.get_attribute("id")
    pages.driver.execute_script("arguments[0].focus()", head)
    head.send_keys(ENTER)
    assert pages.until(lambda: "operator_types.sort" in pages.address)
    pages.settle()
    assert pages.until(lambda: pages.driver.switch_to.active_element.get_attribute("id") == identity)

    field = pages.one("#field-rank")
    field.send_keys("3", ENTER)
    assert pages.until(lambda: "rank=3" in pages.address)


def test_links_to_other_pages_take_ranks_and_steps_along(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ranks")
    field = pages.one("#field-ranks")
    field.send_keys("1-2", ENTER)
    assert pages.until(lambda: "ranks=1-2" in pages.address)
    pages.settle()

    links = {link.text: link.get_attribute("href") for link in pages.every("nav li a")}
    assert "ranks=1-2" in links["Communication"]
    pages.driver.get(links["Communication"])
    pages.settle()
    assert set(pages.column("rank_communication", 1)) == {"1", "2"}


def test_all_rows_of_a_table_can_be_downloaded(pages: Pages, site: Site) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops?rank=2&operator_types.search=softmax")
    links = {link.text: link.get_attribute("href") for link in pages.every("#operator_types .downloads a")}
    assert set(links) == {"CSV", "Parquet", "JSON"}

    with urllib.request.urlopen(links["CSV"]) as answer:
        rows = answer.read().decode("utf-8-sig").splitlines()
    assert len(rows) - 1 == len(pages.column("operator_types", 2))
    with urllib.request.urlopen(links["Parquet"]) as answer:
        assert answer.read(4) == b"PAR1"
    with urllib.request.urlopen(links["JSON"]) as answer:
        assert json.load(answer)


@pytest.mark.parametrize(("kind", "start"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_a_figure_can_be_saved_as_a_picture(pages: Pages, site: Site, downloads: Path, kind: str, start: bytes) -> None:
    pages.open(f"{_run(site, 'gloo')}/ops")
    button = next(each for each in pages.every("#drawn-operator-types .pictures button") if each.text == kind)
    button.click()

    assert pages.until(lambda: bool(list(downloads.glob(f"*.{kind.lower()}"))))
    (file,) = downloads.glob(f"*.{kind.lower()}")
    assert pages.until(lambda: file.stat().st_size > 500)
    assert file.read_bytes().startswith(start)


def test_two_ticks_compare_two_runs(pages: Pages, site: Site) -> None:
    pages.open("/")
    for place in range(2):  # the list is shown anew after each
        pages.every("tbody input[type=checkbox]")[place].click()
        time.sleep(0.5)
        pages.settle()
    assert "tick=" in pages.address
    link = pages.one("a[href*='/compare?']")
    pages.driver.get(link.get_attribute("href") or "")
    pages.settle()

    assert "base=" in pages.address
    assert "new=" in pages.address
    assert "could not be shown" not in pages.text()


def test_the_list_of_runs_is_searched_and_sorted(pages: Pages, site: Site) -> None:
    pages.open("/?search=gloo")
    assert "gloo" in pages.text("#main")
    assert "ascend_text" not in pages.text("#main table")

    pages.open("/?sort=name")
    names = [cell.text.splitlines()[0] for cell in pages.every("tbody tr td:nth-child(2)")]
    assert names == sorted(names)
