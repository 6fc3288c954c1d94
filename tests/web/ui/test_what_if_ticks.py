"""The what-if page: causes that are ticked are changes in its URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

pytest.importorskip("nicegui")

from stepscope.pages.what_if import causes
from stepscope.run import open_run
from stepscope.web.ui.pages.what_if import PAGES_HERE, WORDS, changes_of, chosen, options_of, ticks, toggled
from stepscope.web.ui.state import State

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    return causes(open_run(EXAMPLE))


def of(query: str = "") -> State:
    return State.of(f"/runs/one/what-if?{query}")


def query_of(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


def test_a_cause_is_taken_away_and_put_back() -> None:
    one = toggled(of("lang=zh"), "rank=2,kind=dispatch")
    two = toggled(State.of(one), "link=0-1")
    back = toggled(State.of(two), "rank=2,kind=dispatch")

    assert query_of(one) == {"lang": ["zh"], "without": ["rank=2,kind=dispatch"]}
    assert chosen(State.of(two)) == ["rank=2,kind=dispatch", "link=0-1"]
    assert query_of(back)["without"] == ["link=0-1"]
    assert "without" not in query_of(toggled(State.of(back), "link=0-1"))


def test_causes_of_a_job_can_be_ticked(found: pl.DataFrame) -> None:
    named = found.filter(pl.col("words") != "")
    assert named.height, "the example has a slow rank"
    words = named["words"][0]

    made = ticks(found, of(f"without={words}"), "en")

    assert made[0].is_on
    assert made[0].label == found["what"][0]
    assert len(made) == found.height + 2
    assert query_of(made[-2].url)["ideal"] == ["1"]
    assert query_of(made[-1].url)["bandwidth"] == ["2x"]


def test_what_is_ticked_is_what_the_command_is_asked(found: pl.DataFrame) -> None:
    words = found.filter(pl.col("words") != "")["words"][0]
    run = open_run(EXAMPLE)

    replayed = run.analyse("what_if", **options_of(of(f"without={words}")))

    assert replayed["saving_ns"].sum() > 0


def test_changes_are_those_of_the_declared_page() -> None:
    assert changes_of(of("without=rank%3D1&ideal=1&rank=3&steps=4")) == {"without": "rank=1", "ideal": "1"}
    assert options_of(of("ideal=1"))["ideal"] is True
    assert options_of(of()) == {}


def test_a_cause_that_nothing_names_cannot_be_ticked(found: pl.DataFrame) -> None:
    made = ticks(found.head(1).with_columns(words=pl.lit("")), of(), "zh")

    assert made[0].url == ""
    assert not made[0].is_on


def test_words_are_there_in_both_languages() -> None:
    texts = [*WORDS.values(), *(text for page in PAGES_HERE for text in (page.title, page.about) if text)]
    assert all(text.en and text.zh for text in texts)
