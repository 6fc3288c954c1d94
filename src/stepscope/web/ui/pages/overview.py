"""The overview of a run: the verdict and findings, then where the time went, who is slow, and what was not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from stepscope.texts import Text
from stepscope.web.addresses import PREFIX, run_path
from stepscope.web.ui.context import Context
from stepscope.web.ui.evidence import places_of, timeline_of
from stepscope.web.ui.figures import FigurePlace, Point, figure_panel
from stepscope.web.ui.html import heading, raw, rendered
from stepscope.web.ui.site_map import WebPage
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import OfWholeRun
from stepscope.web.ui.tables import section_panel

if TYPE_CHECKING:
    from stepscope.report.contents import Contents

OPENED = 3
"""Findings that are shown in full; the others open at a click."""

REPORTS = (("HTML", "html"), ("Excel", "xlsx"), ("Markdown", "md"), ("JSON", "json"))
"""Forms in which the whole report can be downloaded, with the ends of their addresses."""

SLOW = ("slow_ranks", "slow_links", "slow_groups")
"""Sections of the declared page `analyze` that the overview shows as tables."""

FIGURES, SLOW_ONES = Text("Where the time goes", "时间去向"), Text("Slow ranks and links", "慢 rank 与慢链路")


async def build(context: Context, _: WebPage) -> None:
    """Build the overview; each part is filled as soon as its answer is there."""
    from stepscope.pages.job import PAGE

    async def load(_: State) -> Contents:
        return await context.asking.overview(context.run, context.language)

    context.panels.add("head", load, lambda found, _: _head(context, found))
    context.panels.add("findings", load, lambda found, _: _findings(context, found))
    heading(FIGURES.of(context.language), identity="figures")
    for place in places():
        figure_panel(context, place, OfWholeRun(context))
    heading(SLOW_ONES.of(context.language), identity="slow")
    for name in SLOW:
        section_panel(context, PAGE, PAGE.section_named(name), subject=OfWholeRun(context))
    ui.element("div").classes("gap")
    context.panels.add("about-data", load, lambda found, _: _shown(context, "data", report=found))


def places() -> Sequence[FigurePlace]:
    """The figures of the overview."""
    return (
        FigurePlace("step-map", click=_of_step),
        FigurePlace("job-time"),
        FigurePlace("time-by-rank", click=_of_rank),
    )


def _of_step(context: Context, point: Point) -> str | None:
    """The step of a rank, at a click on its cell: that of the longest step if several share the cell."""
    place = point.get("customdata")
    if not isinstance(place, (list, tuple)) or len(place) < 2:
        return None
    return context.link("steps", rank=place[0], step=place[1], ranks=None, steps=None)


def _of_rank(context: Context, point: Point) -> str | None:
    """The steps of a rank, at a click on its bar."""
    found = str(point.get("x"))
    return context.link("steps", rank=found, ranks=None) if found.isdecimal() else None


def _head(context: Context, found: Contents) -> None:
    base = f"{PREFIX}{run_path(context.run)}/report"
    downloads = [(name, f"{base}.{end}?lang={context.language}") for name, end in REPORTS]
    _shown(context, "head", report=found, downloads=downloads)


def _findings(context: Context, found: Contents) -> None:
    problems = [(one, places_of(context, one), timeline_of(context, one)) for one in found.problems]
    _shown(context, "finding_list", problems=problems, opened=OPENED)


def _shown(context: Context, name: str, **values: Any) -> None:
    known: Mapping[str, Any] = values
    raw(rendered(context, "overview.html.j2", name, **known))


PAGES_HERE: tuple[WebPage, ...] = (WebPage("", Text("Overview", "概览"), "run", build=build),)
