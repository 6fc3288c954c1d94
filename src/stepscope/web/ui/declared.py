"""Building a page from its description: fields, figures, sections of declared pages, findings beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.errors import StepscopeError
from stepscope.pages.base import RANKS, STEP, STEPS, Page, Section
from stepscope.pages.choosing import Places
from stepscope.pages.layout import LAYOUT
from stepscope.pages.layout import PAGE as SIZES
from stepscope.web.ui.choosing import OF_JOB, PLACED, place_controls, places_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, control_of, controls_of, form
from stepscope.web.ui.figures import figure_panel
from stepscope.web.ui.findings import advice_panel
from stepscope.web.ui.frame import frame
from stepscope.web.ui.html import paragraph, raw
from stepscope.web.ui.panels import ANY
from stepscope.web.ui.site_map import WebPage, declared, site_map
from stepscope.web.ui.state import State
from stepscope.web.ui.tables import load_section, section_panel
from stepscope.web.ui.watching import is_lost, watch


async def build(context: Context, page: WebPage) -> None:
    """Build a page of a run, and fill it as far as its answers are known soon."""
    title = page.title.of(context.language)
    if is_lost(context.entry):
        with frame(context, title):
            watch(context)
        context.panels.listen()
        await context.panels.fill()
        return
    with frame(context, title, site_map(), page.name) as beside:
        watch(context)
        if page.about is not None:
            paragraph(page.about.of(context.language), "intro")
        if page.build is not None:
            await page.build(context, page)
        else:
            parts(context, page)
        if page.name:  # the overview has all findings itself
            with beside:
                advice_panel(context, page.parts, of_rank=page.scope == "rank")
    context.panels.listen()
    await context.panels.fill()


def parts(context: Context, page: WebPage) -> None:
    """The fields, figures and sections of a page."""
    fields(context, page)
    if page.name != SIZES.name and page.name in declared() and LAYOUT in declared()[page.name].options:
        _contradictions(context)
    for place in page.figures:
        figure_panel(context, place)
    for of, section in sections_of(page):
        section_panel(context, of, section)


def _contradictions(context: Context) -> None:
    """A panel that says where the parallel sizes that are given do not count."""

    async def load(state: State) -> Sequence[str]:
        if not state.get(LAYOUT.name):
            return ()
        try:
            return (await load_section(context, SIZES, SIZES.section_named("layout_conflicts"), state)).sentences
        except StepscopeError:  # which tables and figures say
            return ()

    def show(said: Sequence[str], state: State) -> None:  # noqa: ARG001 - one signature for all
        for each in said:
            paragraph(each, "note")

    context.panels.add("sizes", load, show, reads=OF_JOB)


def fields(context: Context, page: WebPage) -> None:
    """The fields of a page: ranks and steps, where ranks stand, the options of its declared page, its own."""
    of = declared().get(page.name)
    usual = {"rank": (STEP,), "job": (RANKS, STEPS), "pair": ()}[page.scope]

    async def load(state: State) -> list[Control]:
        own = list(page.controls(context)) if page.controls else []
        placed = place_controls(context, await _places(context, state)) if page.scope == "job" else []
        names = {control.name for control in (*own, *placed)}
        options = controls_of(of, context, without=PLACED) if of is not None else []
        chosen = [control_of(option, context) for option in usual]
        return [*own, *(each for each in (*chosen, *placed, *options) if each.name not in names or each in placed)]

    def show(controls: list[Control], state: State) -> None:
        raw(form(context, state, controls))

    context.panels.add("fields", load, show, reads=ANY)


async def _places(context: Context, state: State) -> Places:
    """Where ranks stand; as recorded if the parallel sizes that are given are none, as tables and figures say why."""
    try:
        return await places_of(context, state)
    except StepscopeError:
        return await places_of(context, state.changed(layout=None))


def sections_of(page: WebPage) -> Iterator[tuple[Page, Section]]:
    """The sections that a page shows, each with its declared page."""
    names = page.sections if page.sections is not None else ([page.name] if page.name in declared() else [])
    for name in names:
        of_name, _, key = name.partition("/")
        of = declared()[of_name]
        for section in [of.section_named(key)] if key else of.sections:
            if section.heading:
                yield of, section
