"""One server and one browser for all tests of pages, as starting them takes longer than a test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from every_format import FORMATS
from tests.web.browser.site import EXAMPLE, Pages, Site, browsing, copied, missing, serving

SHARED = ("pytorch/dlrm_8rank_v100", "mindspore/synthetic_dp4")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if missing():
        pytest.skip(f"missing: {missing()}")
    root = tmp_path_factory.mktemp("site") / "runs"
    shutil.copytree(EXAMPLE, root / "gloo")
    for name in ("ascend_text", "classic"):
        FORMATS[name](root / name)
    copied(SHARED, root)
    with serving(root, tmp_path_factory.mktemp("cache")) as started:
        started.wait_ready()
        yield started


@pytest.fixture(scope="session")
def browser(site: Site) -> Iterator[Pages]:
    with browsing(site) as pages:
        yield pages


@pytest.fixture
def pages(browser: Pages) -> Iterator[Pages]:
    """The browser without anything that another test left; afterwards, nothing failed and nothing outside was asked."""
    browser.driver.delete_all_cookies()
    browser.driver.get(f"{browser.site.url}/assets/style.css")
    browser.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
    browser.errors()
    browser.outside()
    yield browser
    assert browser.errors() == []
    assert browser.outside() == []


@pytest.fixture
def downloads(browser: Pages, tmp_path: Path) -> Path:
    """The directory into which the browser saves what is downloaded."""
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path), "eventsEnabled": False}
    )
    return tmp_path
