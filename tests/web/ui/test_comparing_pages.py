"""Comparisons on a page: which sides a URL names, the same tables as the command, and what is said once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from page_contexts import context_of, entry

from stepscope.compare import Pair
from stepscope.compare.kernels import BY
from stepscope.errors import StepscopeError
from stepscope.pages.answering import answer, opening_of
from stepscope.pages.compare import PAGE
from stepscope.web.asking import AS_DRAWN, Asking
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.pages.compare import FIGURES, LISTS, controls
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import OfPair, OfRun, SaidAbove
from stepscope.web.ui.tables import downloads, load_section
from web_jobs import catalogue_of, wait_for, write_job


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """Two runs of one job on different days."""
    root = tmp_path_factory.mktemp("runs")
    write_job(root / "monday")
    write_job(root / "tuesday", world=3, day=1)
    with catalogue_of(root, use_store=False) as catalogue:
        wait_for(lambda: [one.state for one in catalogue.entries()] == ["ready", "ready"])
        asking = Asking(catalogue)
        yield Context(Web(catalogue, asking, None), State.of("/compare"))  # type: ignore[arg-type]
        asking.close()


def ids(context: Context) -> dict[str, str]:
    return {one.name: one.id for one in context.web.catalogue.entries()}


def at(context: Context, **values: Any) -> State:
    return State("/compare").changed(values)


def test_a_side_that_is_not_given_is_the_other_one() -> None:
    pair = OfPair(context_of("/compare"))
    assert pair.runs(State.of("/compare?base=a&new=b")) == ("a", "b")
    assert pair.runs(State.of("/compare?new=b")) == ("b", "b")
    assert pair.runs(State.of("/compare?base=a")) == ("a", "a")
    with pytest.raises(StepscopeError, match="Choose a base"):
        pair.runs(State.of("/compare"))


def test_the_page_has_the_sentences_and_tables_of_the_command(two: Context) -> None:
    runs = ids(two)
    state, pair = at(two, base=runs["monday"], new=runs["tuesday"]), OfPair(two)
    opened = Pair(*(two.web.catalogue.open(runs[name]) for name in ("monday", "tuesday")))
    expected = answer(opened, PAGE)
    assert opening_of(asyncio.run(pair.whole(state))) == opening_of(expected)
    for section in PAGE.sections[:3]:
        loaded = asyncio.run(load_section(two, PAGE, section, state, subject=pair))
        rows = expected.tables.get(section.question)
        assert bool(loaded.reason) == (rows is None)
        if rows is not None and not section.views and loaded.tables:
            found = loaded.tables[0].found
            assert (loaded.tables[0].rows.height if found is None else found) == rows.height


def test_ranks_of_one_run_are_compared(two: Context) -> None:
    runs = ids(two)
    state, pair = at(two, new=runs["tuesday"], base_ranks="0", ranks="2"), OfPair(two)
    sides = asyncio.run(pair.whole(state)).run
    assert isinstance(sides, Pair)
    assert [[rank.rank for rank in side.ranks] for side in (sides.base, sides.new)] == [[0], [2]]


def test_rows_are_searched_and_a_wrong_condition_is_said_where_it_was_given(two: Context) -> None:
    runs = ids(two)
    state, pair = at(two, base=runs["monday"], new=runs["tuesday"]), OfPair(two)
    section = PAGE.section_named("time_differences")
    chosen = state.changed({"time_differences.search": "computing"})
    loaded = asyncio.run(load_section(two, PAGE, section, chosen, subject=pair))
    assert 0 < loaded.tables[0].rows.height < 4
    with pytest.raises(StepscopeError) as caught:
        wrong = state.changed({"time_differences.filter": "nothing > 5"})
        asyncio.run(load_section(two, PAGE, section, wrong, subject=pair))
    assert not isinstance(caught.value, SaidAbove)


def test_why_nothing_can_be_compared_is_said_once(two: Context) -> None:
    runs = ids(two)
    state, pair = at(two, base=runs["monday"], new=runs["tuesday"], ranks="77"), OfPair(two)
    with pytest.raises(StepscopeError, match="77") as caught:
        asyncio.run(pair.whole(state))
    assert not isinstance(caught.value, SaidAbove)
    for ask in (
        load_section(two, PAGE, PAGE.sections[0], state, subject=pair),
        pair.of_figure(AS_DRAWN, FIGURES[0].name, {}, state),
    ):
        with pytest.raises(SaidAbove) as silent:
            asyncio.run(ask)
        assert str(silent.value) == ""


def test_a_figure_shows_both_sides(two: Context) -> None:
    runs = ids(two)
    state = at(two, base=runs["monday"], new=runs["tuesday"], by="name")
    drawn = asyncio.run(OfPair(two).of_figure(AS_DRAWN, FIGURES[0].name, {}, state))
    assert len(drawn.spec["data"]) == 2


def test_a_click_on_a_difference_finds_its_rows() -> None:
    click = FIGURES[1].click
    assert click is not None
    context = context_of("/compare?base=a&new=b&compared-operators.of=operators&operator_differences.page=3")
    link = urlsplit(click(context, {"customdata": ["aten::mm", "", ""]}) or "")
    assert link.fragment == "operator_differences"
    assert parse_qs(link.query)["operator_differences.search"] == ["aten::mm"]
    assert "operator_differences.page" not in parse_qs(link.query)
    assert click(context, {"customdata": None}) is None
    assert {section for _, section, _ in LISTS} <= set(PAGE.keys)


def test_all_rows_can_be_downloaded_with_what_is_chosen() -> None:
    context = context_of("/")
    state = State.of("/compare?base=a%20b&new=c&ranks=1&kernel_differences.search=mm&lang=zh")
    found = dict(downloads(OfPair(context), PAGE, PAGE.section_named("kernel_differences"), state))
    link = urlsplit(found["CSV"])
    assert link.path == "/api/v1/compare/kernel_differences"
    assert parse_qs(link.query) == {"base": ["a b"], "new": ["c"], "ranks": ["1"], "search": ["mm"], "format": ["csv"]}
    context.entry = entry("x", id="x y")
    of_run = dict(downloads(OfRun(context), PAGE, PAGE.sections[0], State.of("/runs/x")))
    assert urlsplit(of_run["JSON"]).path.startswith("/api/v1/runs/x%20y/pages/")


def test_the_fields_of_a_side_stand_together_and_runs_that_cannot_be_opened_are_left_out() -> None:
    context = context_of("/compare", [entry("a"), entry("bad", "failed", ranks=0)])
    fields = controls(context, State.of("/compare?new=a"))
    assert [field.name for field in fields][:6] == ["base", "base_ranks", "base_steps", "new", "ranks", "steps"]
    assert [choice.value for choice in fields[0].choices] == ["", "a"]
    assert [choice.value for choice in fields[6].choices] == ["", *BY]
    assert fields[0].choices[0].label != fields[3].choices[0].label  # the same run; none chosen
