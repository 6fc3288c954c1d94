"""Parts of pages that are plain HTML: made by templates, which escape whatever a recording holds."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from nicegui import ui

from stepscope.web.addresses import PREFIX

if TYPE_CHECKING:
    from jinja2 import Environment
    from nicegui.elements.html import Html

    from stepscope.present import Language
    from stepscope.web.ui.reader import Reader

TEMPLATES = (
    "frame.html.j2",
    "table.html.j2",
    "figure.html.j2",
    "findings.html.j2",
    "controls.html.j2",
    "runs.html.j2",
    "overview.html.j2",
    "compare.html.j2",
    "timeline.html.j2",
    "query.html.j2",
    "live.html.j2",
    "what_if.html.j2",
)
"""Templates of this room; a page that needs another one adds it here."""


def raw(markup: Markup, tag: str = "div") -> Html:
    """An element with HTML that is safe already; a text by itself is refused."""
    if not isinstance(markup, Markup):
        raise TypeError("only markup whose values are escaped becomes a part of a page")
    return ui.html(str(markup), sanitize=False, tag=tag)


def paragraph(text: str, kind: str = "") -> Html:
    """A paragraph; what stands between backticks is shown as code."""
    return raw(written(text, kind))


def written(text: str, kind: str = "") -> Markup:
    """What `paragraph` shows."""
    from stepscope.report.html import coded

    return Markup('<p class="{}">{}</p>').format(kind, coded(text))


def heading(text: str, level: int = 2, identity: str = "") -> Html:
    """A heading."""
    start = Markup(' id="{}"').format(identity) if identity else Markup("")
    return raw(Markup("<h{0}{1}>{2}</h{0}>").format(level, start, escape(text)))


def rendered(context: Reader, template: str, name: str = "", **values: Any) -> Markup:
    """What a template, or a macro of it, gives in the reader's language."""
    environment = _environment(context.language)
    found = environment.get_template(template)
    values = {"page": context, "state": context.state, "word": context.word, "api": PREFIX, **values}
    if not name:
        return Markup(found.render(**values))
    return Markup(getattr(found.make_module(values), name)())


@cache
def _environment(language: Language) -> Environment:
    from stepscope.report.html import coded, environment_in
    from stepscope.web.ui.wording import named

    folder = resources.files(__package__) / "templates"
    environment = environment_in(language, {name: (folder / name).read_text(encoding="utf-8") for name in TEMPLATES})
    environment.filters["coded"] = lambda text: coded(named(text, language))  # findings are marked
    return environment
