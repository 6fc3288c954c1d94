"""Where the evidence of a finding is: the page that shows it, with the rank, step and name that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from stepscope.web.ui.context import Context

if TYPE_CHECKING:
    from stepscope.report.items import Item
    from stepscope.report.problems import Problem
    from stepscope.web.ui.site_map import WebPage

MOST = 4
"""Links of a finding."""


@dataclass(frozen=True)
class Place:
    """A page that shows evidence.

    Args:
        title: The page and what it shows there.
        url: Its URL, with what the finding is about.
    """

    title: str
    url: str


def places_of(context: Context, problem: Problem) -> list[Place]:
    """The pages that show the evidence of a finding; if none does, the page about its subject."""
    found: dict[str, Place] = {}
    for item in problem.evidence:
        if item.question in _shown():
            page, key = _shown()[item.question]
            title = f"{page.title.of(context.language)}: {item.heading}" if page.name else item.heading
            found.setdefault(item.question, Place(title, _url(context, page, key, problem, item)))
    places = [*list(found.values())[: MOST - 1], *_cause(context, problem)]
    return places or list(_subject(context, problem))


def timeline_of(context: Context, problem: Problem) -> str:
    """The timeline at the place where a finding costs most; empty if it has no moment."""
    span = problem.finding.span_ns
    if span is None:
        return ""
    chosen: Mapping[str, Any] = {"start_ns": span[0], "end_ns": span[1], "rank": problem.finding.span_rank}
    return context.link("timeline", **chosen, ranks=None, steps=None)


def rank_of(problem: Problem) -> int | None:
    """The rank that shows a finding best; None if it is about all."""
    finding = problem.finding
    if finding.span_rank is not None and (not finding.ranks or finding.span_rank in finding.ranks):
        return finding.span_rank
    return finding.ranks[0] if finding.ranks else None


@cache
def _shown() -> dict[str, tuple[WebPage, str]]:
    """The page that shows the answer to a question, and the name of its section: the first page in the list."""
    from stepscope.web.ui.declared import sections_of
    from stepscope.web.ui.site_map import site_map

    found: dict[str, tuple[WebPage, str]] = {}
    for page in site_map():
        if page.build is None:  # the others may show something else
            for _, section in sections_of(page):
                found.setdefault(section.question, (page, section.key))
    return found


def _subject(context: Context, problem: Problem) -> Iterator[Place]:
    from stepscope.report.contents import part_of
    from stepscope.web.ui.site_map import site_map

    part = part_of(problem.finding)
    for page in site_map():
        if page.name and part in page.parts:
            yield Place(page.title.of(context.language), _url(context, page, "", problem, None))
            return


def _cause(context: Context, problem: Problem) -> Iterator[Place]:
    """The page of one rank about the work at which it loses time."""
    from stepscope.web.ui.findings import CAUSES
    from stepscope.web.ui.site_map import site_map

    kind = problem.finding.evidence.get("kind")
    part = CAUSES.get(kind) if isinstance(kind, str) else None
    if part is None or rank_of(problem) is None:
        return
    for page in site_map():
        if page.group == "rank" and page.parts and page.parts[0] == part:
            yield Place(page.title.of(context.language), _url(context, page, "", problem, None))
            return


def _url(context: Context, page: WebPage, key: str, problem: Problem, item: Item | None) -> str:
    chosen: dict[str, Any] = {"ranks": None, "steps": None, "rank": None}
    if page.scope == "rank":
        chosen["rank"] = rank_of(problem)
    steps = problem.finding.where.get("steps")
    if page.scope == "rank" and isinstance(steps, list) and len(steps) == 1:
        chosen["step"] = steps[0]
    search = _searched(problem, item) if item is not None else ""
    link = context.link(page.name, **chosen, **({f"{key}.search": search} if search else {}))
    return f"{link}#{key}" if key else link


def _searched(problem: Problem, item: Item) -> str:
    """The operator that a finding names, if rows of its evidence have it."""
    import polars as pl

    operators = problem.finding.where.get("operators")
    names = [name for name in operators if isinstance(name, str)] if isinstance(operators, list) else []
    if len(names) != 1:
        return ""
    texts = item.rows.select(pl.col(pl.String))
    has = texts.select(pl.any_horizontal(pl.all().str.contains(names[0], literal=True).any())) if texts.width else None
    return names[0] if has is not None and has.item() else ""
