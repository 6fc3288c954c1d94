"""Answers as tables: searched, filtered, sorted and paged by links and fields whose state is in the URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.pages.base import CHOOSING, Page, Section
from stepscope.web.asking import hashable
from stepscope.web.errors import NotReady
from stepscope.web.ui.choosing import PLACED, rank_of, ranks_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import paragraph, raw, rendered
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

Link = Callable[[str, Any], str | None]
"""The URL that a cell leads to, by the name of its column and its value; None if to none."""


@dataclass(frozen=True)
class Loaded:
    """What a section shows: its tables and sentences, or why there are none.

    Args:
        heading: Heading of the section.
        reason: Why there is no answer; empty if there is one.
        notes: What the answer rests on.
        ranks: The ranks that it is about, as they are asked for; None for all.
        refusal: What is wrong with the words or the condition that choose its rows; empty if nothing is.
    """

    heading: str
    tables: Sequence[ShownTable]
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    reason: str = ""
    ranks: Any = None
    refusal: str = ""


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


def section_panel(
    context: Context,
    page: Page,
    section: Section,
    *,
    links: Link | None = None,
    subject: Subject | None = None,
) -> Panel[Loaded]:
    """A panel with one section of a declared page.

    Args:
        links: Where its cells lead, besides ranks and steps.
        subject: Whom it asks. Default: the run of the page.
    """
    asked = subject or OfRun(context)

    async def load(state: State) -> Loaded:
        try:
            return await load_section(context, page, section, state, asked)
        except NotReady:
            raise
        except StepscopeError as error:
            if not any(state.get(f"{section.key}.{name}") for name in CHOOSES):
                raise
            return await _refused(error, state)

    async def _refused(error: StepscopeError, state: State) -> Loaded:
        """Why no rows are chosen, under the heading that the section has with all rows."""
        every = state.changed({f"{section.key}.{name}": None for name in CHOOSES})
        whole = await load_section(context, page, section, every, asked)
        return Loaded(whole.heading, [], refusal=worded(error.marked, context.language))

    def show(loaded: Loaded, state: State) -> None:
        show_section(context, page, section, loaded, state, links, asked)

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
    wide = bool(state.get(f"{section.key}.wide"))
    key = ("shown", stamps, page.name, hashable(request), wide, context.language)
    return await context.asking.ask(key, lambda: _loaded(answered, section, context, wide=wide), runs)


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
    context: Context,
    page: Page,
    section: Section,
    loaded: Loaded,
    state: State,
    links: Link | None = None,
    subject: Subject | None = None,
) -> None:
    """The tables and sentences of a section, or why there are none."""
    if loaded.reason:
        raw(rendered(context, "table.html.j2", "missing", title=loaded.heading, reason=loaded.reason))
        return
    if loaded.refusal:
        raw(_search_again(context, section.key, loaded, state))
        return
    is_chosen = any(state.get(f"{section.key}.{name}") for name in CHOOSES)
    if not is_chosen and not any(table.rows.height for table in loaded.tables):
        raw(rendered(context, "table.html.j2", "nothing", title=loaded.heading))
    for place, table in enumerate(loaded.tables):
        if not is_chosen and not table.rows.height:
            continue
        show_table(context, page, section, table, state, links, subject, is_first=place == 0, ranks=loaded.ranks)
    for text in dict.fromkeys((*loaded.sentences, *loaded.notes)):
        paragraph(text, "said" if text in loaded.sentences else "note")


def _search_again(context: Context, key: str, loaded: Loaded, state: State) -> Markup:
    """The fields that choose rows, as they are, with what is wrong with them."""
    names = [f"{key}.{name}" for name in CHOOSES]
    return rendered(
        context,
        "table.html.j2",
        "refused",
        key=key,
        title=loaded.heading,
        reason=loaded.refusal,
        search=state.get(f"{key}.search"),
        condition=state.get(f"{key}.filter"),
        hidden=state.others(names),
        every=state.changed(dict.fromkeys(names)).url,
    )


def show_table(
    context: Context,
    page: Page,
    section: Section,
    table: ShownTable,
    state: State,
    links: Link | None = None,
    subject: Subject | None = None,
    *,
    is_first: bool = True,
    ranks: Any = None,
) -> None:
    """One table, with what sorts, searches and pages it.

    Args:
        ranks: The ranks that it is about, as they are asked for.
    """
    files = downloads(subject or OfRun(context), page, section, state, ranks)
    show_rows(context, table, section.key, section.rows, state, files, links, is_first=is_first)


def show_rows(
    context: Context,
    table: ShownTable,
    key: str,
    rows: int,
    state: State,
    files: Sequence[tuple[str, str]],
    links: Link | None = None,
    *,
    is_first: bool = True,
    is_declared: bool = True,
) -> None:
    """A part of a table, with what sorts, searches and pages it.

    Args:
        key: Before the names of the parameters that choose the rows.
        rows: Rows on a page unless others are chosen.
        files: Names of formats, and where to get all rows in them.
        links: Where its cells lead, besides ranks and steps.
        is_first: Whether it is the table that is searched and paged.
        is_declared: Whether it may have more columns than are shown.
    """
    from stepscope.report.html import table_body

    def link(column: str, value: Any) -> str | None:
        return (links(column, value) if links else None) or usual_link(context, column, value)

    listing = state.listing(key, rows)
    found = table.rows.height if table.found is None else table.found
    pages = max(1, -(-found // listing.top)) if listing.top else 1
    raw(
        rendered(
            context,
            "table.html.j2",
            "table",
            shown=table,
            key=key,
            heads=_heads(state, key, table),
            rows=table_body(table, link),
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


def plain_table(context: Context, table: ShownTable, key: str, links: Link | None = None) -> None:
    """A short table without anything that changes it."""
    from stepscope.report.html import table_body, table_head

    raw(
        rendered(
            context,
            "table.html.j2",
            "plain",
            shown=table,
            key=key,
            heads=table_head(table),
            rows=table_body(table, links),
        )
    )
