"""Sentences of pages for readers of web pages: what they refer to has the names that it has there.

Pages are declared once, for the terminal as well. Their sentences, reasons and errors mark the options, tables and
pages that they name (`stepscope.references`); a reader of a web page has fields, tables and pages of these names.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from stepscope.present import Language
from stepscope.references import Reference, as_named
from stepscope.texts import Text
from stepscope.web.ui.labels import LABELS

FIELDS = {
    "filter": Text("Condition", "条件"),
    "search": Text("Search", "搜索"),
    "top": Text("Rows", "行数"),
    "rank": Text("Rank", "Rank"),
    "graphs": Text("Graphs", "图"),
    "sort": Text("Order", "排序"),
}
"""Fields that no page declares, by the name of the option."""

_JSON = Text("the downloaded JSON", "下载的 JSON")
_OVERVIEW = Text("Overview", "概览")


def worded(text: str, language: Language) -> str:
    """A sentence about an answer, why there is none, or an error, in a language, with the names that the pages have."""
    from stepscope.pages.words import marked_sentence

    return named(marked_sentence(text, language), language)


def named(text: str, language: Language) -> str:
    """A text that is in the reader's language already, with the names that the pages have.

    Examples:
        >>> named("«--ranks» 9: there are ranks 0-3. Choose «--ranks» and «--base-ranks»", "en")
        '“Ranks” 9: there are ranks 0-3. Choose “Ranks” and “Ranks of the base”'
        >>> named('To see them: «--table transfers --filter» "problem <> \\'\\'".', "en")
        'To see them: “Sends and receives”, “Condition” "problem <> \\'\\'".'
        >>> named("Record stacks: `stepscope record --stacks`", "en")
        'Record stacks: `stepscope record --stacks`'
    """
    return as_named(text, lambda one: _name(one, language), "、" if language == "zh" else ", ")


def _name(one: Reference, language: Language) -> str:
    """What it is called on the pages; one that they do not have, e.g. an option of a plug-in, as it is typed."""
    if one.kind == "page":
        found = _titles(language).get(one.name)
    elif one.kind == "table":
        found = _headings(language).get(one.name)
    elif one.name == "json":
        return _JSON.of(language)
    else:
        name = one.name.replace("-", "_")
        label = LABELS.get(name) or FIELDS.get(name)
        found = None if label is None else label.of(language)
    return f"“{found}”" if found else f"`{one.typed}`"


@cache
def _titles(language: Language) -> dict[str, str]:
    """Titles of pages by the names of commands."""
    site_map = import_module("stepscope.web.ui.site_map").site_map  # whose pages say what is worded here
    titles = {page.name: page.title.of(language) for page in site_map() if page.name not in ("timeline", "query")}
    return {**titles, "analyze": _OVERVIEW.of(language)}


@cache
def _headings(language: Language) -> dict[str, str]:
    """Headings of sections by the names of tables, and by the questions that they answer."""
    from stepscope.pages import PAGES
    from stepscope.pages.shown_table import filled
    from stepscope.pages.words import said

    found: dict[str, str] = {}
    for page in PAGES:
        for section in page.sections:
            text = section.heading or section.key.replace("_", " ").capitalize()
            heading = filled(said(text, language), "step", language)
            found.setdefault(section.key, heading)
            found.setdefault(section.question, heading)
    return found
