"""The pages of a run, in the order of the list beside them: what each shows, and which findings belong there.

Every declared page is one of them. Those that users come for first are described here or in `pages/`, with figures and
fields of their own; the others show their sections as they are declared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, get_args

from stepscope.pages import PAGES
from stepscope.pages.base import Page, Scope
from stepscope.texts import Text
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control
from stepscope.web.ui.figures import FigurePlace

Group = Literal["run", "cluster", "rank", "cluster_further", "rank_further"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""Headings of the list of pages, in order."""


@dataclass(frozen=True)
class WebPage:
    """A page of a run.

    Args:
        name: Its name in URLs; that of the declared page whose sections it shows, if there is one.
        title: Its title.
        group: Where it stands in the list.
        scope: Whether it is about one rank or about the job.
        about: What it shows and how to read it.
        sections: What it shows besides figures, as `page` (all sections of a declared page) or `page/section`. Default:
            all sections of the declared page of its name.
        figures: Its figures, which come first.
        controls: Fields that concern the whole page, besides the options of the declared page.
        parts: Parts of a report whose findings stand beside it; see `stepscope.report.outline`.
        build: Builds what it shows, instead of figures and sections.
    """

    name: str
    title: Text
    group: Group = "cluster_further"
    scope: Scope = "job"
    about: Text | None = None
    sections: Sequence[str] | None = None
    figures: Sequence[FigurePlace] = ()
    controls: Callable[[Context], Sequence[Control]] | None = None
    parts: Sequence[str] = field(default_factory=tuple)
    build: Callable[[Context, WebPage], Awaitable[None]] | None = None


MODULES = ("overview", "rank_pages", "cluster_pages", "what_if", "timeline", "query", "further")
"""Modules of `pages/` that describe pages, in the order of the list; each has `PAGES_HERE`."""


@cache
def site_map() -> tuple[WebPage, ...]:
    """All pages of a run, those of one group together."""
    described = [page for name in MODULES for page in import_module(f"stepscope.web.ui.pages.{name}").PAGES_HERE]
    names = {page.name for page in described}
    others = [plain(page) for page in PAGES if page.name not in names and page.scope != "pair"]
    every = [*described, *others]
    return tuple(page for group in GROUPS for page in every if page.group == group)


def plain(page: Page) -> WebPage:
    """A declared page as it is."""
    title = Text(page.name.replace("-", " ").capitalize(), page.name)
    return WebPage(page.name, title, "rank_further" if page.scope == "rank" else "cluster_further", page.scope)


@cache
def declared() -> dict[str, Page]:
    """The declared pages by name."""
    return {page.name: page for page in PAGES}


def page_named(name: str) -> WebPage | None:
    """The page of a name; None if there is none."""
    return next((page for page in site_map() if page.name == name), None)
