"""What stands around every page: the header, the list of pages of the run, and the column with findings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from nicegui import ui

from stepscope._version import __version__
from stepscope.web.addresses import run_path
from stepscope.web.refusals import LANGUAGE_COOKIE
from stepscope.web.ui.context import SCHEME_COOKIE, Context
from stepscope.web.ui.html import raw, rendered
from stepscope.web.ui.state import CHOSEN

if TYPE_CHECKING:
    from nicegui.element import Element

    from stepscope.web.ui.site_map import WebPage

ASSETS = "/assets/"
"""Where the application's own style and script are served."""

SPOKEN: Mapping[str, str] = {"en": "en", "zh": "zh-Hans"}
"""What browsers and readers of screens call a language."""


@contextmanager
def frame(context: Context, title: str, pages: Sequence[WebPage] = (), current: str = "") -> Iterator[Element]:
    """The page around what is built inside; gives the column for findings, which stays hidden while it is empty.

    Args:
        title: Title of the page, in its heading and in the browser's tab.
        pages: The pages of the run that the list shows.
        current: Name of the one that this is.
    """
    name = context.entry.name if context.entry else ""
    ui.page_title(" · ".join(part for part in (title, name, "stepscope") if part))
    ui.add_head_html(str(_head(context)))
    _plain_surroundings()
    raw(rendered(context, "frame.html.j2", "header", title=title, context_name=name))
    with ui.element("div").classes("shell" if pages else "shell bare"):
        if pages:
            raw(
                rendered(
                    context,
                    "frame.html.j2",
                    "pages",
                    groups=_grouped(context, pages),
                    current=current,
                    entry=context.entry,
                    is_of_rank=any(page.name == current and page.scope == "rank" for page in pages),
                    hidden=context.state.others(["rank"]),
                ),
                tag="nav",
            ).props(f'aria-label="{context.word("pages")}" data-carried="{" ".join(CHOSEN)}"')
        with ui.element("main").props('id="main" tabindex="-1"'):
            raw(Markup("<h1>{}</h1>").format(title))
            beside = ui.element("aside").classes("helper")
            content = ui.element("div").classes("content")
    ui.add_body_html(str(rendered(context, "frame.html.j2", "end")))
    with content:
        yield beside


def _plain_surroundings() -> None:
    """Make NiceGUI's own `<main>` around header, list and content a plain element: a page has one, of its content."""
    element: Any = ui.context.client.content
    while element.parent_slot is not None:
        element = element.parent_slot.parent
        if element.tag == "q-page":
            element.tag = "div"


def _head(context: Context) -> Markup:
    """Style and script; the theme is set before anything is drawn."""
    theme = context.state.get("theme")
    return Markup(
        '<link rel="stylesheet" href="{assets}style.css?v={version}">'
        '<script src="{assets}theme.js?v={version}" data-theme="{theme}" data-lang="{language}" data-spoken="{spoken}" '
        'data-cookies="{scheme} {kept}"></script>'
        '<script src="{assets}script.js?v={version}" defer></script>'
    ).format(
        assets=ASSETS,
        version=__version__,
        theme=theme if theme in ("light", "dark", "auto") else "",
        language=context.state.get("lang") and context.language,
        spoken=SPOKEN[context.language],
        scheme=SCHEME_COOKIE,
        kept=LANGUAGE_COOKIE,
    )


def _grouped(context: Context, pages: Sequence[WebPage]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Headings of the list, each with names, titles and URLs of its pages."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for page in pages:
        title = page.title.of(context.language)
        groups.setdefault(context.word(f"group_{page.group}"), []).append((page.name, title, context.link(page.name)))
    return list(groups.items())


class Asset(NamedTuple):
    """A file of the application: its text and MIME type, and a tag that changes with the text."""

    text: str
    mime: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """The application's own files by name."""
    from stepscope.report.html import template_file

    folder = resources.files(__package__) / "static"
    own = {name: (folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js", "theme.js")}
    found = {
        "style.css": (template_file("parts.css") + own["style.css"], "text/css"),
        "script.js": (template_file("parts.js") + own["script.js"], "text/javascript"),
        "theme.js": (own["theme.js"], "text/javascript"),
    }
    return {name: Asset(text, mime, f'"{_digest(text)}"') for name, (text, mime) in found.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def overview_link(context: Context, run: str) -> str:
    """The URL of another run's overview."""
    return context.state.elsewhere(run_path(run)).url
