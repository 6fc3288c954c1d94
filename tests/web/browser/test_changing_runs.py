"""Runs that come, break and go while their pages are open: the page says so, and the others work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from every_format import FORMATS
from tests.web.browser.site import EXAMPLE, Pages, Site, browsing, missing, serving

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"missing: {missing()}")


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    root = tmp_path_factory.mktemp("changing") / "runs"
    shutil.copytree(EXAMPLE, root / "first")
    with serving(root, tmp_path_factory.mktemp("cache")) as site, browsing(site) as pages:
        site.wait_ready("first")
        yield pages


def _new(site: Site, name: str, kind: str) -> None:
    """A run of its own: copies of one recording would be one run."""
    hidden = site.root.parent / f"{name}.part"
    FORMATS[kind](hidden)
    hidden.rename(site.root / name)


def test_a_new_run_appears_by_itself(changing: Pages) -> None:
    changing.open("/")
    assert "second" not in changing.text("#main")

    _new(changing.site, "second", "ascend_text")
    assert changing.until(lambda: "second" in changing.text("#main"), 30)
    changing.site.wait_ready("second")


def test_a_run_that_is_removed_while_shown_says_so_and_others_work(changing: Pages) -> None:
    site = changing.site
    _new(site, "third", "classic")
    site.wait(lambda runs: "third" in runs and runs["third"]["state"] == "ready")
    changing.open(f"/runs/{site.identity('third')}/ops")

    shutil.rmtree(site.root / "third")
    site.wait(lambda runs: "third" not in runs or runs["third"]["state"] == "gone", 60)
    changing.driver.refresh()
    assert changing.until(lambda: "removed" in changing.text() or "no run" in changing.text(), 20), changing.text()
    assert "could not be shown" not in changing.text()

    changing.open(f"/runs/{site.identity('first')}/ops")
    assert changing.every("#operator_types tbody tr")
    assert [each for each in changing.errors() if "404" not in each and "410" not in each] == []


def test_a_broken_run_is_listed_with_its_reason(changing: Pages) -> None:
    site = changing.site
    broken = site.root / "broken"
    broken.mkdir()
    whole = next(EXAMPLE.glob("rank-0*")).read_bytes()
    (broken / "rank-0.json.gz").write_bytes(whole[: len(whole) // 3])
    (broken / "trace.json").write_text('{"traceEvents": [{"ph": "X", "name": ')

    changing.open("/")
    assert changing.until(lambda: "broken" in changing.text("#main"), 60), changing.text()
    changing.open(f"/runs/{site.identity('first')}")
    assert "ank 2" in changing.text("#main")
