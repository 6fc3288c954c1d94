"""The declared pages: what `--json` of their commands prints, a part at a time, with what the columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
from starlette.responses import Response

from stepscope.errors import Unavailable
from stepscope.pages import PAGES
from stepscope.pages.answering import Answered, Request, document, one_table, per_of
from stepscope.pages.base import BASE_CHOOSING, CHOOSING, Option, Page, Section
from stepscope.pages.job import PAGE as JOB
from stepscope.pages.listing import Listing
from stepscope.pages.shown_table import columns_of
from stepscope.pages.words import said
from stepscope.present import Language
from stepscope.web.api.calls import JSON, Call, Operation, Place
from stepscope.web.api.content import described
from stepscope.web.api.files import CSV, FORMAT, PARQUET, file_name, format_of, table_file
from stepscope.web.api.listings import LISTING, TOP_ROWS, listing_of, paging
from stepscope.web.api.parameters import INT64, LANGUAGE, Parameter, name_of, of_option
from stepscope.web.api.problems import ApiProblem, in_words_of_queries

RUN_PAGES: Mapping[str, Page] = {page.name: page for page in (JOB, *PAGES) if page.scope != "pair"}
"""Pages about a run, by name."""


def page_named(name: str) -> Page:
    """The page about a run of a name.

    Raises:
        ApiProblem: If there is none; the text lists them.
    """
    if name not in RUN_PAGES:
        raise ApiProblem("unknown-page", f"there is no page {name}. There are: {', '.join(RUN_PAGES)}")
    return RUN_PAGES[name]


def section_named(page: Page, name: str) -> Section:
    """The section of a page of a name.

    Raises:
        ApiProblem: If there is none; the text lists them.
    """
    if name not in page.keys:
        raise ApiProblem("unknown-page", f"page {page.name} has no table {name}. There are: {', '.join(page.keys)}")
    return page.section_named(name)


def options_of(page: Page) -> Sequence[Option]:
    """What may be chosen on a page beside its rows: ranks and steps, then what it declares."""
    own = {option.name: option for option in (*page.options, *(BASE_CHOOSING if page.scope == "pair" else ()))}
    return (*CHOOSING[page.scope], *(each for name, each in own.items() if name not in _chosen(page)))


def _chosen(page: Page) -> tuple[str, str]:
    ranks, steps = (option.name for option in CHOOSING[page.scope])
    return ranks, steps


def page_parameters(page: Page, *, one_table: bool) -> tuple[Parameter, ...]:
    """The parameters of a page, or of one of its tables."""
    return (*_own_parameters(page.name), *LISTING, *((FORMAT,) if one_table else ()), LANGUAGE, INT64)


@cache
def _own_parameters(name: str) -> tuple[Parameter, ...]:
    page = next(page for page in (JOB, *PAGES) if page.name == name)
    return tuple(of_option(option) for option in options_of(page))


def request_of(page: Page, values: Mapping[str, Any], table: str | None = None, *, whole: bool = False) -> Request:
    """What the values of a query choose on a page."""
    given = {option.name: values[name_of(option)] for option in options_of(page)}
    ranks, steps = _chosen(page)
    own = {option.name: given[option.name] for option in page.options}
    return Request(given[ranks], given[steps], table, listing_of(values, whole=whole), own, main_only=False)


def page_document(answered: Answered, language: Language) -> dict[str, Any]:
    """What `--json` prints of a page, with what the columns of its tables are."""
    found = document(answered, in_words_of_queries)
    per = per_of(answered.run)
    sections = {section.key: section for section, _ in answered.found}
    columns = {
        key: described(columns_of(sections[key].question, rows, per, language=language))
        for key, rows in found["tables"].items()
    }
    if "summary" in found:  # of a pair; where the sides lie is not for clients
        for side in ("base", "new"):
            found[side].pop("path")
    return {**found, "columns": columns}


async def answered_of(call: Call, page: Page, request: Request) -> Answered:
    """The answers of a page about the run of an address."""
    return await call.service.asking.answered(call.run, page, request)


async def sent(call: Call, page: Page, stamps: Sequence[str], answers: Any, section: Section | None) -> Response:
    """A page, or one of its tables.

    Args:
        stamps: Stamps of the runs that it is about.
        answers: Asks for the answers to a request.
        section: The only section that is wanted; None for all.
    """
    form = "json" if section is None else format_of(call)
    tag = call.tag(*stamps, form)
    if (same := call.unchanged(tag)) is not None:
        return same
    key = None if section is None else section.key
    request = request_of(page, call.values, key, whole=form != "json")
    # The answers of a table are the same whatever rows are chosen of it, so all who look at it share them.
    answered = replace(await answers(request if key is None else replace(request, listing=Listing())), request=request)
    if form != "json":
        assert section is not None
        return await _file(call, form, stamps, answered, section, tag)

    def content() -> dict[str, Any]:
        found = page_document(answered, call.language)
        if section is None:
            links = {each.key: call.address(f"{_below(call)}/{each.key}") for each in page.sections}
            return {**found, "top": call.values["top"] or TOP_ROWS, "links": links}
        return {**found, **paging(call, found["rows"].get(section.key, 0))}

    body = await call.asked(call.question(*stamps, form), lambda: call.encoded(content()))
    return call.sent(body, JSON, tag=tag)


def _below(call: Call) -> str:
    """The address of a page, below the prefix."""
    found = call.operation.path
    for name, value in call.place.items():
        found = found.replace(f"{{{name}}}", value)
    return found


async def _file(
    call: Call, form: str, stamps: Sequence[str], answered: Answered, section: Section, tag: str
) -> Response:
    if section.question in answered.unavailable:
        raise Unavailable(answered.unavailable[section.question], question=section.question)
    rows: pl.DataFrame = await call.apart(lambda: one_table(answered))
    about = [call.place["run"]] if "run" in call.place else [call.values["base"], call.values["new"]]
    name = file_name(*(each for each in about if each), section.key)
    return await table_file(call, form, name, stamps, rows, tag)


async def _page(call: Call) -> Response:
    page, entry = page_named(call.place["page"]), call.entry()
    return await sent(call, page, [entry.stamp], lambda request: answered_of(call, page, request), None)


async def _table(call: Call) -> Response:
    page = page_named(call.place["page"])
    section, entry = section_named(page, call.place["table"]), call.entry()
    return await sent(call, page, [entry.stamp], lambda request: answered_of(call, page, request), section)


def declared_page(page: Page, language: Language) -> dict[str, Any]:
    """A page for programs: its tables and options."""
    return {
        "name": page.name,
        "help": said(page.help, language),
        "more": in_words_of_queries(page.more),
        "scope": page.scope,
        "tables": [
            {
                "name": section.key,
                "question": section.question,
                "heading": said(section.heading, language),
                "only_with": [each.replace("-", "_") for each in section.only_with],
                "only_without": [each.replace("-", "_") for each in section.only_without],
            }
            for section in page.sections
        ],
        "options": [
            {
                "name": name_of(option),
                "kind": option.kind,
                "help": in_words_of_queries(option.help),
                "default": option.default,
                "minimum": option.minimum,
                "repeated": bool(option.joined),
            }
            for option in options_of(page)
        ],
    }


async def _declared(call: Call) -> Response:
    everything = [declared_page(page, call.language) for page in (JOB, *PAGES)]
    return await call.kept([call.service.started], lambda: {"pages": everything})


async def _of_run(call: Call) -> Response:
    call.entry()
    path = f"/runs/{call.run}/pages"
    pages = [
        {
            **declared_page(page, call.language),
            "links": {
                "self": call.address(f"{path}/{page.name}"),
                "tables": {key: call.address(f"{path}/{page.name}/{key}") for key in page.keys},
            },
        }
        for page in RUN_PAGES.values()
    ]
    return await call.kept([call.service.started], lambda: {"pages": pages})


def _parameters(place: Place) -> Sequence[Parameter]:
    page = page_named(place["page"])
    if "table" not in place:
        return page_parameters(page, one_table=False)
    if place["table"] != "{table}":
        section_named(page, place["table"])
    return page_parameters(page, one_table=True)


def _tables(place: Place) -> Mapping[str, Sequence[str]]:
    return {"table": RUN_PAGES[place["page"]].keys}


PAGE_ANSWER = {"$ref": "#/components/schemas/PageAnswer"}
TABLE_ANSWER = {"$ref": "#/components/schemas/TableAnswer"}
ROW_PROBLEMS = ("unknown-column", "no-rows", "not-recorded")

OPERATIONS = (
    Operation(
        "list_pages",
        "/pages",
        "List all pages: what they show, their tables, and what may be chosen.",
        _declared,
        (LANGUAGE,),
        subject="Pages",
    ),
    Operation(
        "list_run_pages",
        "/runs/{run}/pages",
        "List the pages about a run, with their addresses.",
        _of_run,
        (LANGUAGE,),
        subject="Pages",
    ),
    Operation(
        "show_page",
        "/runs/{run}/pages/{page}",
        "Show a page: what `--json` of the command with its name prints, with the first rows of each table.",
        _page,
        _parameters,
        returns={JSON: PAGE_ANSWER},
        problems=ROW_PROBLEMS,
        variants=[{"page": name} for name in RUN_PAGES],
        subject="Pages",
    ),
    Operation(
        "show_table",
        "/runs/{run}/pages/{page}/{table}",
        "Show one table of a page: rows that are searched, filtered, sorted and paged, or all of them as a file.",
        _table,
        _parameters,
        returns={JSON: TABLE_ANSWER, CSV: {"type": "string"}, PARQUET: {"type": "string", "format": "binary"}},
        problems=ROW_PROBLEMS,
        variants=[{"page": name, "table": "{table}"} for name in RUN_PAGES],
        names=_tables,
        subject="Pages",
    ),
)
