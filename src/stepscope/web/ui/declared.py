"""Building a page from its description: fields, figures, sections of declared pages, findings beside them."""

from __future__ import annotations

from collections.abc import Iterator

from nicegui import ui

from stepscope.pages.base import RANKS, STEP, STEPS, Page, Section
from stepscope.pages.words import said
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, control_of, controls_of, form
from stepscope.web.ui.figures import figure_panel
from stepscope.web.ui.findings import advice_panel
from stepscope.web.ui.frame import frame
from stepscope.web.ui.html import paragraph, raw
from stepscope.web.ui.site_map import WebPage, declared, site_map
from stepscope.web.ui.tables import section_panel


async def build(context: Context, page: WebPage) -> None:
    """Build a page of a run, and fill it as far as its answers are known soon."""
    title = page.title.of(context.language)
    with frame(context, title, site_map(), page.name) as beside:
        if page.about is not None:
            paragraph(page.about.of(context.language), "intro")
        if page.build is not None:
            await page.build(context, page)
        else:
            parts(context, page)
        with beside:
            advice_panel(context, page.parts, of_rank=page.scope == "rank")
    context.panels.listen()
    await context.panels.fill()


def parts(context: Context, page: WebPage) -> None:
    """The fields, figures and sections of a page."""
    fields(context, page)
    for place in page.figures:
        figure_panel(context, place)
    links = page.links(context) if page.links else None
    for of, section in sections_of(page):
        section_panel(context, of, section, links=links)


def fields(context: Context, page: WebPage) -> None:
    """The fields of a page: ranks and steps, the options of its declared page, its own."""
    own = list(page.controls(context)) if page.controls else []
    of = declared().get(page.name)
    names = {control.name for control in own}
    usual = [control_of(option, context) for option in (STEP,) if page.scope == "rank"]
    usual += [control_of(option, context) for option in (RANKS, STEPS) if page.scope == "job"]
    options = controls_of(of, context) if of is not None else []
    controls: list[Control] = [each for each in (*usual, *options) if each.name not in names]
    holder = ui.element("div").classes("page-fields")

    def show(state: object = None) -> None:  # noqa: ARG001 - the context has the state already
        holder.clear()
        with holder:
            raw(form(context, context.state, [*own, *controls]))

    show()
    context.panels.follow(show)


def sections_of(page: WebPage) -> Iterator[tuple[Page, Section]]:
    """The sections that a page shows, each with its declared page."""
    names = page.sections if page.sections is not None else ([page.name] if page.name in declared() else [])
    for name in names:
        of_name, _, key = name.partition("/")
        of = declared()[of_name]
        for section in [of.section_named(key)] if key else of.sections:
            if section.heading:
                yield of, section


def described(page: Page, context: Context) -> str:
    """What a declared page shows, as a sentence."""
    return said(page.help, context.language)
