"""The list of runs: search, order, pages, ticks, what it says of each state, and names that mean harm."""

from __future__ import annotations

import time
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from page_contexts import HOSTILE, context_of, entry

from stepscope.web.catalogue import Entry
from stepscope.web.ui.pages.runs import PAGE_ROWS, changes, is_same_list, listing, table, ticks, toggled
from stepscope.web.ui.pages.runs_words import WORDS
from stepscope.web.ui.state import State

DAY_NS = 86_400 * 10**9

RUNS = [
    entry("alpha", ranks=8, start_ns=3 * DAY_NS, findings={"high": 0, "medium": 2}, frameworks=("pytorch",), steps=5),
    entry("Beta", "reading", progress=0.25, ranks=2, changed_ns=9 * DAY_NS, frameworks=("mindspore",)),
    entry("gamma", ranks=64, start_ns=5 * DAY_NS, findings={"high": 1}, formats=("kineto",), steps=50),
    entry("delta", "failed", ranks=0, problem="delta.json: is not valid JSON. Pass a trace"),
]


def names(url: str, runs: list[Entry] = RUNS) -> list[str]:
    return [found.name for found in listing(runs, State.of(url)).rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["alpha", "Beta", "gamma", "delta"]),
        ("?sort=name", ["alpha", "Beta", "delta", "gamma"]),
        ("?sort=-name", ["gamma", "delta", "Beta", "alpha"]),
        ("?sort=-ranks", ["gamma", "alpha", "Beta", "delta"]),
        ("?sort=start", ["alpha", "gamma", "Beta", "delta"]),
        ("?sort=-start", ["gamma", "alpha", "Beta", "delta"]),
        ("?sort=-findings", ["gamma", "alpha", "Beta", "delta"]),
        ("?sort=state", ["delta", "Beta", "alpha", "gamma"]),
        ("?sort=nothing", ["alpha", "Beta", "gamma", "delta"]),
        ("?search=PyTorch", ["alpha"]),
        ("?search=kineto+gam", ["gamma"]),
        ("?search=failed", ["delta"]),
        ("?search=kineto+alpha", []),
    ],
)
def test_the_url_says_which_runs_are_listed_and_in_which_order(query: str, expected: list[str]) -> None:
    """What is unknown comes last, whichever way the list is sorted."""
    assert names("/" + query) == expected


def test_a_heading_sorts_the_other_way_at_the_next_click_and_not_at_the_third() -> None:
    context = context_of("/", RUNS)

    def following(query: str) -> str:
        state = State.of("/" + query)
        html = str(table(context, listing(RUNS, state), state))
        url = html.split('id="sort-runs-ranks" href="')[1].split('"', maxsplit=1)[0]
        return parse_qs(urlsplit(unescape(url)).query).get("sort", [""])[0]

    assert [following(query) for query in ("", "?sort=-ranks", "?sort=ranks")] == ["-ranks", "ranks", ""]


def test_ticks_keep_their_order_and_a_third_takes_the_place_of_the_first() -> None:
    state = State.of("/?tick=gamma,alpha")
    assert ticks(state) == ["gamma", "alpha"]
    assert toggled(state, "gamma") == "alpha"
    assert toggled(state, "Beta") == "alpha,Beta"
    assert ticks(State.of("/?tick=,a,,a,b,")) == ["a", "b"]


def test_two_ticked_runs_lead_to_their_comparison_the_first_one_as_base() -> None:
    state = State.of("/?lang=zh&tick=gamma,alpha&sort=name")
    html = str(table(context_of("/", RUNS), listing(RUNS, state), state))
    link = unescape(html.split('id="compare-ticked" href="')[1].split('"', maxsplit=1)[0])
    assert urlsplit(link).path == "/compare"
    assert parse_qs(urlsplit(link).query) == {"base": ["gamma"], "new": ["alpha"], "lang": ["zh"]}
    assert html.count(" checked") == 2


def test_a_run_that_cannot_be_opened_has_no_tick() -> None:
    state = State.of("/")
    html = str(table(context_of("/", RUNS), listing(RUNS, state), state))
    assert 'id="tick-alpha"' in html
    assert 'id="tick-delta"' not in html


@pytest.mark.parametrize("language", ["en", "zh"])
def test_failed_and_gone_runs_say_why_and_what_to_do(language: str) -> None:
    runs = [RUNS[3], entry("old", "gone", problem="its files are no longer there")]
    state = State.of("/")
    html = unescape(str(table(context_of("/", runs, language=language), listing(runs, state), state)))
    assert "delta.json" in html
    assert "stepscope analyze" in html
    assert WORDS["gone_how"].of(language) in html  # type: ignore[arg-type]


def test_an_empty_list_says_where_was_looked_and_how_to_record() -> None:
    state = State.of("/")
    html = str(table(context_of("/"), listing([], state), state))
    assert "<code>/data/runs</code>" in html
    assert "stepscope record --output /data/runs" in html


def test_a_search_without_runs_leads_back_to_all() -> None:
    state = State.of("/?search=nowhere&sort=name")
    html = str(table(context_of("/", RUNS), listing(RUNS, state), state))
    assert 'href="/?sort=name"' in html


def test_the_progress_of_one_run_replaces_its_line_only() -> None:
    state, before = State.of("/"), listing(RUNS, State.of("/"))
    context = context_of("/", RUNS)
    further = [*RUNS[:1], entry("Beta", "reading", progress=0.5, changed_ns=9 * DAY_NS, frameworks=("mindspore",))]
    after = listing([*further, *RUNS[2:]], state)
    assert is_same_list(before, after)
    changed = changes(context, before, after, state)
    assert list(changed) == ["run-Beta"]
    assert "50%" in changed["run-Beta"]
    done = listing([RUNS[0], entry("Beta"), *RUNS[2:]], state)
    assert set(changes(context, before, done, state)) == {"run-Beta", "runs-count"}
    assert not is_same_list(before, listing(RUNS[:3], state))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_that_mean_harm_stay_text(language: str) -> None:
    run = entry(
        HOSTILE,
        "failed",
        id="a'b\"c<d>",
        problem=HOSTILE,
        formats=(HOSTILE,),
        frameworks=(HOSTILE,),
        findings={"high": 1},
    )
    runs = [run, entry("x", id=HOSTILE)]
    state = State.of("/").changed(search="", tick=HOSTILE, sort=HOSTILE)
    html = str(table(context_of("/", runs, language=language), listing(runs, state), state))
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")


def test_a_thousand_runs_are_listed_by_pages_within_a_moment() -> None:
    runs = [entry(f"run {number}", start_ns=number * DAY_NS, findings={"high": number % 3}) for number in range(1000)]
    context, state = context_of("/", runs), State.of("/?sort=-findings&page=3")
    table(context, listing(runs, state), state)  # templates are compiled at the first use
    started = time.process_time()  # other work of the machine does not count
    found = listing(runs, state)
    html = str(table(context, found, state))
    assert time.process_time() - started < 0.2
    assert (len(found.rows), found.pages, found.found) == (PAGE_ROWS, 10, 1000)
    assert html.count('id="tick-') == PAGE_ROWS
    assert names("/?page=99", runs) == [found.name for found in runs[-PAGE_ROWS:]]


@pytest.mark.parametrize(("time_ns", "said"), [(None, "-"), (10**11, "-"), (1_700_000_000 * 10**9, "2023-11-14 22:13")])
def test_a_clock_that_counts_from_its_own_zero_is_no_date(time_ns: int | None, said: str) -> None:
    runs = [entry("a_run", start_ns=time_ns)]
    html = str(table(context_of("/", runs), listing(runs, State.of("/")), State.of("/")))
    assert f'<td class="n">{said}<span' in html
    assert "a_<wbr>run" in html
