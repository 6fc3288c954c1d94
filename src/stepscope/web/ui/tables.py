"""Answers as tables: searched, filtered, sorted and paged by links and fields whose state is in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.pages.base import CHOOSING, Page, Section
from stepscope.web.asking import hashable
from stepscope.web.errors import NotReady
from stepscope.web.ui.choosing import PLACED, rank_of, ranks_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import raw, rendered, written
from stepscope.web.ui.panels import Panel
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import OfRun, Subject, options_of, read_by, steps_of
from stepscope.web.ui.wording import worded

if TYPE_CHECKING:
    from markupsafe import Markup

    from stepscope.pages.answering import Answered, Request
    from stepscope.pages.shown_table import ShownTable

CHOOSES = ("search", "filter", "page")
"""What chooses the rows of a section."""


@dataclass(frozen=True)
class Loaded:
    """What a section shows: its tables and sentences, or why there are none.

    Args:
        heading: Heading of the section.
        reason: Why there is no answer; empty if there is one.
        notes: What the answer rests on.
        ranks: The ranks that it is about, as they are asked for; None for all.
    """

    heading: str
    tables: Sequence[ShownTable]
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    reason: str = ""
    ranks: Any = None


async def request_of(context: Context, page: Page, state: State, section: Section) -> Request:
    """What the state asks of a section of a declared page.

    Raises:
        StepscopeError: If a value is not what it should be.
    """
    from stepscope.pages.answering import Request

    ranks: Any = await (rank_of if page.scope == "rank" else ranks_of)(context, state)
    options = {name: value for name, value in options_of(page, state).items() if name not in PLACED}
    listing = state.listing(section.key, section.rows)
    return Request(ranks, steps_of(CHOOSING[page.scope][1], state), section.key, listing, options)


def section_panel(context: Context, page: Page, section: Section, *, subject: Subject | None = None) -> Panel[Markup]:
    """A panel with one section of a declared page.

    Args:
        subject: Whom it asks. Default: the run of the page.
    """
    asked = subject or OfRun(context)

    async def load(state: State) -> Markup:
        try:
            return await _shown(context, page, section, state, asked)
        except NotReady:
            raise
        except StepscopeError as error:
            if not any(state.get(f"{section.key}.{name}") for name in CHOOSES):
                raise
            return await _refused(error, state)

    async def _refused(error: StepscopeError, state: State) -> Markup:
        """Why no rows are chosen, under the heading that the section has with all rows."""
        every = state.changed({f"{section.key}.{name}": None for name in CHOOSES})
        whole = await load_section(context, page, section, every, asked)
        return _search_again(context, section.key, whole.heading, worded(error.marked, context.language), state)

    def show(markup: Markup, state: State) -> None:  # noqa: ARG001 - one signature for all
        if markup:
            raw(markup)

    return context.panels.add(section.key, load, show, reads=[*read_by(page), *asked.reads])


async def load_section(
    context: Context,
    page: Page,
    section: Section,
    state: State,
    subject: Subject | None = None,
) -> Loaded:
    """What a section of a declared page shows for a state; see `section_panel`.

    Raises:
        StepscopeError: If the state asks for what there is not.
    """
    asked = subject or OfRun(context)
    request = await request_of(context, page, state, section)
    runs = asked.runs(state)
    stamps = context.asking.stamps(runs)  # of the data before it is asked: it may be read anew meanwhile
    answered = await asked.answered(page, request, state)
    wide = _is_wide(section, state)
    key = ("shown", stamps, page.name, hashable(request), wide, context.language)
    return await context.asking.shown(key, lambda: _loaded(answered, section, context, wide=wide), runs)


async def _shown(context: Context, page: Page, section: Section, state: State, asked: Subject) -> Markup:
    """A section as the page shows it at its address, which is in the links of the section.

    A long table takes long to write, so that is done in a thread, and once for all who look at the same address.
    """
    request = await request_of(context, page, state, section)
    runs = asked.runs(state)
    stamps = context.asking.stamps(runs)
    answered = await asked.answered(page, request, state)
    there = replace(context, state=state)

    def show() -> Markup:
        loaded = _loaded(answered, section, context, wide=_is_wide(section, state))
        return section_markup(there, page, section, loaded, state, asked)

    return await context.asking.shown(("section", stamps, state.url, section.key, context.language), show, runs)


def _is_wide(section: Section, state: State) -> bool:
    """Whether all columns are shown."""
    return bool(state.get(f"{section.key}.wide"))


def _loaded(answered: Answered, section: Section, context: Context, *, wide: bool) -> Loaded:
    from stepscope.pages.answering import notes_of, per_of
    from stepscope.pages.showing import shown_sections
    from stepscope.pages.shown_table import filled
    from stepscope.pages.words import said

    language = context.language
    text = section.heading or section.key.replace("_", " ").capitalize()
    title = filled(said(text, language), per_of(answered.run), language)
    if reasons := answered.unavailable:
        return Loaded(title, [], reason=worded(next(iter(reasons.values())), language))
    shown = list(shown_sections(answered, every_column=wide, language=language))
    found = next(iter(answered.found))[1]
    notes = [*notes_of(answered.run, section, found), *answered.notes]
    return Loaded(
        title,
        [table for one in shown for table in one.tables],
        [worded(each, language) for one in shown for each in one.sentences],
        [worded(each, language) for each in notes],
        ranks=answered.request.ranks,
    )


def show_section(
    context: Context, page: Page, section: Section, loaded: Loaded, state: State, subject: Subject | None = None
) -> None:
    """The tables and sentences of a section, or why there are none."""
    if markup := section_markup(context, page, section, loaded, state, subject or OfRun(context)):
        raw(markup)


def section_markup(
    context: Context, page: Page, section: Section, loaded: Loaded, state: State, subject: Subject
) -> Markup:
    """What `show_section` shows."""
    from markupsafe import Markup

    if loaded.reason:
        return rendered(context, "table.html.j2", "missing", title=loaded.heading, reason=loaded.reason)
    is_chosen = any(state.get(f"{section.key}.{name}") for name in CHOOSES)
    parts = []
    if not is_chosen and not any(table.rows.height for table in loaded.tables):
        parts.append(rendered(context, "table.html.j2", "nothing", title=loaded.heading))
    files = downloads(subject, page, section, state, loaded.ranks)
    for place, table in enumerate(loaded.tables):
        if is_chosen or table.rows.height:
            parts.append(table_markup(context, table, section.key, section.rows, state, files, is_first=place == 0))
    for text in dict.fromkeys((*loaded.sentences, *loaded.notes)):
        parts.append(written(text, "said" if text in loaded.sentences else "note"))
    return Markup("\n").join(parts)


def _search_again(context: Context, key: str, heading: str, refusal: str, state: State) -> Markup:
    """The fields that choose rows, as they are, with what is wrong with them."""
    names = [f"{key}.{name}" for name in CHOOSES]
    return rendered(
        context,
        "table.html.j2",
        "refused",
        key=key,
        title=heading,
        reason=refusal,
        search=state.get(f"{key}.search"),
        condition=state.get(f"{key}.filter"),
        hidden=state.others(names),
        every=state.changed(dict.fromkeys(names)).url,
    )


def table_markup(
    context: Context,
    table: ShownTable,
    key: str,
    rows: int,
    state: State,
    files: Sequence[tuple[str, str]],
    *,
    is_first: bool = True,
    is_declared: bool = True,
) -> Markup:
    """A part of a table, with what sorts, searches and pages it.

    Args:
        key: Before the names of the parameters that choose the rows.
        rows: Rows on a page unless others are chosen.
        files: Names of formats, and where to get all rows in them.
        is_first: Whether it is the table that is searched and paged.
        is_declared: Whether it may have more columns than are shown.
    """
    from stepscope.report.html import table_body

    listing = state.listing(key, rows)
    found = table.rows.height if table.found is None else table.found
    pages = max(1, -(-found // listing.top)) if listing.top else 1
    return rendered(
        context,
        "table.html.j2",
        "table",
        shown=table,
        key=key,
        heads=_heads(state, key, table),
        rows=table_body(table, partial(usual_link, context)),
        search=state.get(f"{key}.search"),
        condition=state.get(f"{key}.filter"),
        is_first=is_first,
        found=found,
        page_number=listing.page,
        pages=pages,
        previous=state.changed({f"{key}.page": listing.page - 1 if listing.page > 2 else None}).url,
        following=state.changed({f"{key}.page": listing.page + 1}).url,
        wider=state.changed({f"{key}.wide": not state.get(f"{key}.wide")}).url if is_declared else "",
        is_wide=bool(state.get(f"{key}.wide")),
        more=[
            (size, state.changed({f"{key}.rows": size, f"{key}.page": None}).url)
            for size in (20, 100, 500)
            if found > rows
        ],
        top=listing.top,
        hidden=state.others([f"{key}.{name}" for name in CHOOSES]),
        downloads=files,
    )


def _heads(state: State, key: str, table: ShownTable) -> list[Mapping[str, Any]]:
    """The columns of a table, each with the URL that sorts by it: numbers from the largest, then the other way."""
    given = state.get(f"{key}.sort")
    heads: list[Mapping[str, Any]] = []
    for column in table.columns:
        number = table.rows.schema[column.name].is_numeric()
        first, second = (f"-{column.name}", column.name) if number else (column.name, f"-{column.name}")
        order = "" if given.removeprefix("-") != column.name else "descending" if given[0] == "-" else "ascending"
        following = {"": first, first: second}.get(given if order else "")
        heads.append(
            {
                "title": column.title,
                "doc": column.doc,
                "number": number,
                "order": order,
                "url": state.changed({f"{key}.sort": following, f"{key}.page": None}).url,
            }
        )
    return heads


def usual_link(context: Context, column: str, value: Any) -> str | None:
    """Where ranks and steps in any table lead: to the steps of the rank, and to the step."""
    if value is None or context.entry is None or isinstance(value, list):
        return None
    if column in ("rank", "max_rank", "min_rank", "slowest_rank"):
        return context.link("steps", rank=value, ranks=None)
    return None


def downloads(subject: Subject, page: Page, section: Section, state: State, ranks: Any = None) -> list[tuple[str, str]]:
    """Names of formats, and where to get all rows of a section in them.

    Args:
        ranks: The ranks that the section is about: of a page that declares no hosts, stages and groups, they are told
            by number.
    """
    key = section.key
    chosen = {option.name: option for option in (*page.options, *CHOOSING[page.scope])}
    values = {
        name: "true" if option.kind == "flag" else state.get(name) for name, option in chosen.items() if state.get(name)
    }
    if page.scope == "job" and ranks is not None and any(state.get(name) and name not in chosen for name in PLACED):
        values["ranks"] = str(ranks)
    values |= {name: state.get(f"{key}.{name}") for name in ("search", "filter", "sort") if state.get(f"{key}.{name}")}
    formats = ("CSV", "Parquet", "JSON")
    return [(name, subject.address(page, section, {**values, "format": name.lower()}, state)) for name in formats]


def plain_table(context: Context, table: ShownTable, key: str) -> Markup:
    """A short table without anything that changes it."""
    from stepscope.report.html import table_body, table_head

    return rendered(
        context, "table.html.j2", "plain", shown=table, key=key, heads=table_head(table), rows=table_body(table)
    )
