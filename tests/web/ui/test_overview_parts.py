"""The overview of a run: its findings lead to their evidence, and what it says of a run that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from page_contexts import HOSTILE, context_of, entry

from stepscope.report.contents import Contents
from stepscope.web.asking import Asking
from stepscope.web.catalogue import Entry
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.declared import sections_of
from stepscope.web.ui.evidence import places_of, rank_of, timeline_of
from stepscope.web.ui.findings import about
from stepscope.web.ui.html import rendered
from stepscope.web.ui.pages.overview import places
from stepscope.web.ui.pages.runs import top_of
from stepscope.web.ui.site_map import page_named
from stepscope.web.ui.state import State
from stepscope.web.ui.watching import is_lost, is_worth_saying, present
from web_jobs import catalogue_of, wait_for

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture(scope="module")
def run() -> Iterator[Context]:
    """A job of which a rank waits for data."""
    with catalogue_of(EXAMPLE, use_store=False, analyse=True) as catalogue:
        listed = wait_for(lambda: next((one for one in catalogue.entries() if one.state == "ready"), None))
        asking = Asking(catalogue)
        context = Context(Web(catalogue, asking, None), State.of(f"/runs/{listed.id}?ranks=0&theme=dark"))  # type: ignore[arg-type]
        context.entry = listed
        yield context
        asking.close()


@pytest.fixture(scope="module")
def found(run: Context) -> Contents:
    return asyncio.run(run.asking.overview(run.run, "en"))


def test_there_is_something_to_look_at(found: Contents) -> None:
    assert found.problems
    assert any(problem.finding.span_ns for problem in found.problems)


def test_each_finding_leads_to_a_page_that_shows_its_evidence(run: Context, found: Contents) -> None:
    for problem in found.problems:
        for place in places_of(run, problem):
            url = urlsplit(place.url)
            page = page_named(url.path.removeprefix(f"/runs/{run.run}/"))
            assert page is not None, place
            query = parse_qs(url.query)
            assert "ranks" not in query
            assert query["theme"] == ["dark"]
            if page.scope == "rank" and problem.finding.ranks:
                assert int(query["rank"][0]) in problem.finding.ranks
            if url.fragment:
                assert url.fragment in [section.key for _, section in sections_of(page)]


def test_some_finding_about_a_rank_leads_to_the_table_that_names_it(run: Context, found: Contents) -> None:
    slow = next(problem for problem in found.problems if len(problem.finding.ranks) == 1)
    assert any(urlsplit(place.url).fragment for place in places_of(run, slow))


def test_a_rank_that_waits_for_data_leads_to_its_data_preparation_and_stands_there(
    run: Context, found: Contents
) -> None:
    slow = next(problem for problem in found.problems if problem.finding.evidence.get("kind") == "data_loading")
    rank = slow.finding.ranks[0]

    assert any(place.url.startswith(f"/runs/{run.run}/input?") for place in places_of(run, slow))
    assert slow in about(found.problems, ("dataloader",), rank)
    assert slow not in about(found.problems, ("dataloader",), rank + 1)
    assert slow in about(found.problems, ("slow-ranks",), None)
    assert slow not in about(found.problems, ("memory",), None)


def test_a_finding_leads_to_its_place_on_the_timeline(run: Context, found: Contents) -> None:
    for problem in found.problems:
        link = urlsplit(timeline_of(run, problem))
        span = problem.finding.span_ns
        if span is None:
            assert link.path == ""
            continue
        query = parse_qs(link.query)
        assert link.path == f"/runs/{run.run}/timeline"
        assert (int(query["start_ns"][0]), int(query["end_ns"][0])) == span
        assert int(query["rank"][0]) == problem.finding.span_rank


def test_a_finding_about_a_few_ranks_is_shown_on_one_of_them(found: Contents) -> None:
    for problem in found.problems:
        rank = rank_of(problem)
        assert rank is None or not problem.finding.ranks or rank in problem.finding.ranks


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_findings_are_listed_with_an_anchor_and_the_first_are_open(run: Context, language: str) -> None:
    told = asyncio.run(run.asking.overview(run.run, language))  # type: ignore[arg-type]
    problems = [(one, places_of(run, one), timeline_of(run, one)) for one in told.problems]
    html = str(rendered(run, "overview.html.j2", "finding_list", problems=problems, opened=1))
    for problem in told.problems:
        assert html.count(f'id="{problem.key}"') == 1
        assert problem.words.summary.replace("`", "")[:20] in unescape(html)
    assert html.count('<details class="problem') == len(told.problems)
    assert html.count('" open>') == 1


def test_the_head_has_verdict_split_and_facts(run: Context, found: Contents) -> None:
    html = unescape(str(rendered(run, "overview.html.j2", "head", report=found, downloads=[("HTML", "/x?a=1&b=2")])))
    assert found.verdict[0].replace("`", "")[:30] in html
    for share in found.facts.shares:
        assert share.name in html
    assert 'href="/x?a=1&b=2" download' in html


def test_the_top_finding_in_the_list_is_that_of_the_overview(run: Context, found: Contents) -> None:
    assert run.entry is not None
    assert top_of(run, run.entry) == found.problems[0].words.summary


def test_a_click_on_a_step_opens_it_and_elsewhere_nothing(run: Context) -> None:
    by_name = {place.name: place for place in places()}
    click = by_name["step-map"].click
    assert click is not None
    link = urlsplit(click(run, {"customdata": [1, 2, "host"]}) or "")
    assert link.path == f"/runs/{run.run}/steps"
    assert parse_qs(link.query) == {"rank": ["1"], "step": ["2"], "theme": ["dark"]}
    assert click(run, {"customdata": None}) is None
    bar = by_name["time-by-rank"].click
    assert bar is not None
    assert parse_qs(urlsplit(bar(run, {"x": "3", "y": 5.5}) or "").query)["rank"] == ["3"]
    assert bar(run, {"x": "mean"}) is None


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("state", ["waiting", "reading", "analysing", "failed", "gone", "ready"])
def test_a_page_says_how_its_run_fares(state: str, language: str) -> None:
    one = replace(entry(HOSTILE, state, problem=HOSTILE, progress=0.4), unread=2)
    context = context_of("/runs/x", [one], language=language)
    context.entry = one
    html = str(rendered(context, "overview.html.j2", "run_state", one=one, problem=one.problem))
    assert "<script" not in html
    assert "\x1b" not in html
    assert ("40%" in html) == (state in ("reading", "analysing"))
    assert ('href="/"' in html) == (state in ("failed", "gone"))
    assert is_worth_saying(one)
    assert is_lost(one) == (state in ("failed", "gone"))
    assert is_lost(replace(one, ranks=0))


def test_a_run_that_left_the_list_is_not_an_error() -> None:
    one: Entry = entry("x")
    context = context_of("/runs/x", [])
    context.entry = one
    assert present(context) is None
    html = str(rendered(context, "overview.html.j2", "run_state", one=None, problem=""))
    assert 'href="/"' in html
