"""What is chosen on a page counts for all that it shows: figures, tables, downloads, what stands beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from page_contexts import context_of

from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import Drawn
from stepscope.pages.base import Page
from stepscope.web.asking import AS_DRAWN, Asking
from stepscope.web.ui import figures, tables
from stepscope.web.ui.choosing import places_of
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.controls import controls_of
from stepscope.web.ui.declared import parts
from stepscope.web.ui.figures import options_of
from stepscope.web.ui.pages import cluster_pages, rank_pages
from stepscope.web.ui.panels import Panel, Panels
from stepscope.web.ui.site_map import declared, page_named
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import OfRun, OfWholeRun
from stepscope.web.ui.tables import Loaded, downloads
from web_jobs import catalogue_of, wait_for

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture(scope="module")
def run() -> Iterator[Context]:
    """A job of four ranks, on pages whose parts are what they show before that is written as HTML."""
    with catalogue_of(EXAMPLE, use_store=False) as catalogue, pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "section_markup", lambda *asked: next(one for one in asked if isinstance(one, Loaded)))
        patched.setattr(figures, "for_page", lambda _: AS_DRAWN)
        listed = wait_for(lambda: next((one for one in catalogue.entries() if one.state == "ready"), None))
        asking = Asking(catalogue)
        context = Context(Web(catalogue, asking, None), State.of(f"/runs/{listed.id}"))  # type: ignore[arg-type]
        context.entry = listed
        yield context
        asking.close()


class Kept(Panels):
    """Panels that are loaded without being shown."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.loads: dict[str, tuple[Any, Panel[Any]]] = {}

    def add(self, key: str, load: Any, show: Any, reads: Any = ()) -> Any:
        panel: Panel[Any] = Panel.__new__(Panel)
        panel._reads = (*reads, f"{key}.")
        self.loads[key] = (load, panel)
        return panel


def loads_of(run: Context, name: str) -> Mapping[str, tuple[Any, Panel[Any]]]:
    page = page_named(name)
    assert page is not None
    context = Context(run.web, run.state)
    context.entry = run.entry
    context.panels = kept = Kept(context)
    parts(context, page)
    return kept.loads


def rows_of(run: Context, name: str, key: str, **chosen: str) -> Any:
    """The rows of a part of a page, or why there are none."""
    load, _ = loads_of(run, name)[key]
    try:
        found = asyncio.run(load(State(f"/runs/{run.run}/{name}", chosen)))
    except StepscopeError as error:
        return str(error)
    found = found[0] if isinstance(found, tuple) else found
    if isinstance(found, Unavailable):
        return str(found)
    assert isinstance(found, (Drawn, Loaded))
    return [table.rows.to_dicts() for table in found.tables]


PAGES = ("ranks", "communication", "summary", "kernels", "steps", "ops", "memory", "host", "flops")


@pytest.mark.parametrize("name", PAGES)
def test_no_part_of_a_page_shows_ranks_and_steps_that_there_are_not(run: Context, name: str) -> None:
    page = page_named(name)
    assert page is not None
    ranks, steps = ("rank", "step") if page.scope == "rank" else ("ranks", "steps")
    curves = "figure-step-parts"  # of all steps, with the chosen one marked

    for key in loads_of(run, name):
        if key in ("fields", "sizes"):
            continue
        assert "no rank 77" in rows_of(run, name, key, **{ranks: "77"}), key
        found = rows_of(run, name, key, **{steps: "7777"})
        assert isinstance(found, str) or key == curves or not any(found), key
        assert isinstance(rows_of(run, name, key, **{steps: "abc"}), str), key


@pytest.mark.parametrize("name", PAGES)
def test_parts_that_change_with_a_choice_are_filled_again(run: Context, name: str) -> None:
    steps = run.web.catalogue.open(run.run).steps
    choices = [("rank", "2"), ("ranks", "1-2"), ("step", str(steps[-1])), ("steps", str(steps[-1])), ("layout", "pp=4")]

    for key, (_, panel) in loads_of(run, name).items():
        if key in ("fields", "sizes"):
            continue
        before = rows_of(run, name, key)
        for parameter, value in choices:
            if rows_of(run, name, key, **{parameter: value}) != before:
                assert panel.depends_on({parameter}), (key, parameter)


def test_a_figure_has_the_steps_of_the_table(run: Context) -> None:
    steps = run.web.catalogue.open(run.run).steps
    (cells,) = rows_of(run, "ranks", "figure-step-map", steps=str(steps[-1]))

    assert len(cells) == 4
    (types,) = rows_of(run, "ops", "figure-operator-types", step=str(steps[-1]))
    rows = {row["type"]: row["total_ns"] for row in rows_of(run, "ops", "operator_types", step=str(steps[-1]))[0]}
    shown = {row["type"]: row["total_ns"] for row in types}
    assert shown["aten::mm"] == rows["aten::mm"]
    assert types != rows_of(run, "ops", "figure-operator-types")[0]
    # a page about one rank takes one step; those that were chosen on another page do not count there
    assert rows_of(run, "ops", "figure-operator-types", steps="7777") == rows_of(run, "ops", "figure-operator-types")


def test_given_parallel_sizes_count_for_tables_figures_and_stages(run: Context) -> None:
    assert rows_of(run, "ranks", "stage_means") != rows_of(run, "ranks", "stage_means", layout="pp=4")
    bars = rows_of(run, "ranks", "figure-rank-steps", layout="pp=4", **{"rank-steps.by": "stage"})
    assert not isinstance(bars, str)
    assert [row["rank"] for row in rows_of(run, "ranks", "rank_means", layout="pp=4", stage="2")[0]] == [2]
    assert "no stage 2" in rows_of(run, "ranks", "rank_means", stage="2")
    assert list(asyncio.run(places_of(run, State("", {"layout": "pp=2"}))).stages) == [0, 1]


def test_the_overview_is_about_the_whole_job_whatever_was_chosen_before(run: Context) -> None:
    state = State(f"/runs/{run.run}", {"ranks": "1", "steps": "1", "host": "elsewhere"})

    chosen = asyncio.run(OfWholeRun(run).of_figure(AS_DRAWN, "time-by-rank", {}, state))
    whole = asyncio.run(OfRun(run).of_figure(AS_DRAWN, "time-by-rank", {}, State("")))
    assert chosen.tables[0].rows.equals(whole.tables[0].rows)
    page = declared()["links"]
    address = OfWholeRun(run).address(page, page.sections[0], {"ranks": "1", "format": "csv"}, state)
    assert parse_qs(urlsplit(address).query) == {"format": ["csv"]}


def query_of(run: Context, page: Page, state: State, ranks: str | None = None) -> dict[str, list[str]]:
    return parse_qs(urlsplit(dict(downloads(OfRun(run), page, page.sections[0], state, ranks))["CSV"]).query)


def test_downloads_have_the_ranks_of_the_table_and_flags_as_the_api_has_them(run: Context) -> None:
    links, ranks = declared()["links"], declared()["ranks"]

    assert query_of(run, links, State("", {"host": "a", "by_step": "1"}), "0-3") == {
        "ranks": ["0-3"],
        "by_step": ["true"],
        "format": ["csv"],
    }
    assert query_of(run, ranks, State("", {"host": "a", "ranks": "1"}), "1") == {
        "ranks": ["1"],
        "host": ["a"],
        "format": ["csv"],
    }
    assert query_of(run, links, State(""), None) == {"format": ["csv"]}


def test_options_that_choose_nothing_on_a_page_have_no_field() -> None:
    context = context_of("/runs/a/ranks")

    assert [control.name for control in controls_of(declared()["kernels"], context)] == []
    assert [control.name for control in controls_of(declared()["flame"], context)] == ["by"]
    assert "by_step" in [control.name for control in controls_of(declared()["links"], context)]


@pytest.mark.parametrize(
    ("figure", "given", "why"),
    [
        ("rank-steps", {"rank-steps.step": "bogus"}, "give a whole number"),
        ("rank-steps", {"rank-steps.step": "9" * 30}, "give a whole number"),
        ("rank-steps", {"rank-steps.colour": "red"}, "There are: step, by, sort, split"),
        ("step-trace", {"step": "abc"}, "give a whole number"),
    ],
)
def test_fields_of_figures_are_refused_if_they_are_none(figure: str, given: Mapping[str, str], why: str) -> None:
    pages = (*cluster_pages.PAGES_HERE, *rank_pages.PAGES_HERE)
    place = next(place for page in pages for place in page.figures if place.name == figure)

    with pytest.raises(StepscopeError, match=why):
        options_of(place, State("", given))


def test_the_operator_and_the_transport_of_a_page_choose_what_figures_show() -> None:
    places = {place.name: place for page in (rank_pages.INPUT, cluster_pages.LINKS) for place in page.figures}

    assert options_of(places["input-curves"], State("", {"operator": "BatchOp_1"})) == {"operator": "BatchOp_1"}
    assert options_of(places["link-matrix"], State("", {"transport": "RDMA"})) == {"transport": "RDMA"}


def clicked(page: str, figure: str, custom: Sequence[Any], url: str = "") -> str | None:
    found = page_named(page)
    assert found is not None
    context = context_of(url or f"/runs/a/{page}", [])
    context.entry = type("Listed", (), {"id": "a", "name": "a"})()
    place = next(place for place in found.figures if place.name == figure)
    assert place.click is not None
    return place.click(context, {"customdata": list(custom)})


def test_a_click_leads_to_what_was_clicked() -> None:
    assert clicked("ranks", "rank-steps", [5, 0.1]) == "/runs/a/steps?rank=5"
    by_stage = "/runs/a/ranks?rank-steps.by=stage"
    assert clicked("ranks", "rank-steps", [1, 0.1], by_stage) == "/runs/a/ranks?stage=1"
    by_host = "/runs/a/ranks?rank-steps.by=host&steps=3"
    assert clicked("ranks", "rank-steps", ["node1", 0.1], by_host) == "/runs/a/ranks?steps=3&host=node1"
    span = ["1760000000059090339", "1760000000060338120"]
    assert clicked("pipeline", "marey", [7, 11, *span, "x"]) == (
        f"/runs/a/timeline?rank=7&start_ns={span[0]}&end_ns={span[1]}"
    )
    assert clicked("pipeline", "marey", [7, 11, "allreduce"]) is None
    assert clicked("memory", "memory", ["67 MB", 0.0029]) is None
    assert clicked("memory", "memory", [None, None, span[0], 10, "-"]) == (
        f"/runs/a/memory?at_ns={span[0]}#memory_breakdown"
    )
