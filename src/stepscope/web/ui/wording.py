"""What sentences of pages say about the command line, in words of the web pages.

Pages are declared once, for the terminal as well, so their sentences, reasons and errors name options as they are typed
there. A reader of a web page has fields, tables and pages instead: these stand here under the names that they have.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from stepscope.pages import PAGES
from stepscope.pages.shown_table import filled
from stepscope.pages.words import said
from stepscope.present import Language
from stepscope.texts import Text
from stepscope.web.ui.labels import LABELS

FIELDS = {
    "filter": Text("Condition", "条件"),
    "search": Text("Search", "搜索"),
    "top": Text("Rows", "行数"),
    "rank": Text("Rank", "Rank"),
    "graphs": Text("Graphs", "图"),
    "sort": Text("Order", "排序"),
    "stages": LABELS["stage"],
    "hosts": LABELS["host"],
}
"""Fields that no page declares, by the name of the option."""

_HAS = Text("the downloaded JSON has", "下载的 JSON 中有")
_SAYS = Text("the downloaded JSON says", "下载的 JSON 说明")
_IN_JSON = Text("the downloaded JSON", "下载的 JSON")
_EVERYTHING_AS_RECORDED = Text("choose all that was recorded to see them", "选择全部记录即可显示")
_OVERVIEW = Text("Overview", "概览")

_COMMAND = re.compile(r"(?<!对其运行 )`stepscope ([a-z-]+)((?: [^`]*)?)`(?! on it)")
"""A command, but for one that is to be run on files which no page shows."""

_RECORDED_WITH = re.compile(r"`(--(?:stacks|shapes|memory))`")
_TABLE = re.compile(r"`?--table ([a-z_]+)`?")
_JSON = re.compile(r"--json (has|says)\b|`?--json`?")
_EXPLAIN = re.compile(r"--explain adds them")
_SORTED = re.compile(r"--sort -?[a-z_]+")
_OPTION = re.compile(r"(?<![\w`-])--([a-z][a-z-]*)(?![\w-])")
_CHINESE = re.compile("[一-鿿]")


def in_words_of_pages(text: str) -> str:
    """A sentence with options, tables and commands under the names that they have on the pages.

    What is no part of the pages stays, such as commands that record, and options of other programs.

    Examples:
        >>> in_words_of_pages("--ranks 9: there are ranks 0-3. Choose --ranks and --base-ranks")
        '“Ranks” 9: there are ranks 0-3. Choose “Ranks” and “Ranks of the base”'
        >>> in_words_of_pages('To see them: --table transfers --filter "problem <> \\'\\'".')
        'To see them: “Sends and receives”, “Condition” "problem <> \\'\\'".'
        >>> in_words_of_pages("Record stacks: `stepscope record --stacks`; DeepSpeed takes --deepspeed")
        'Record stacks: `stepscope record --stacks`; DeepSpeed takes --deepspeed'
        >>> in_words_of_pages("Run `stepscope analyze` on it to see why")
        'Run `stepscope analyze` on it to see why'
    """
    language: Language = "zh" if _CHINESE.search(text) else "en"
    text = _RECORDED_WITH.sub(r"`stepscope record \1`", text)
    kept: list[str] = []

    def command(found: re.Match[str]) -> str:
        page = _titles(language).get(found[1])
        if page is None or (found[1] == "analyze" and found[2]):  # it has tables that no page shows
            kept.append(found[0])
            return f"\0{len(kept) - 1}\0"
        return f"“{page}”{found[2]}"

    text = _COMMAND.sub(command, text)
    text = _EXPLAIN.sub(lambda _: _EVERYTHING_AS_RECORDED.of(language), text)
    text = _JSON.sub(lambda found: {"has": _HAS, "says": _SAYS}.get(found[1] or "", _IN_JSON).of(language), text)
    text = _TABLE.sub(lambda found: _table(found, language), text)
    text = _SORTED.sub(lambda _: f"“{FIELDS['sort'].of(language)}”", text)
    text = _OPTION.sub(lambda found: _field(found, language), text)
    text = re.sub(r"” (?=“)", "”、" if language == "zh" else "”, ", text)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def _table(found: re.Match[str], language: Language) -> str:
    heading = _headings(language).get(found[1])
    return f"“{heading}”" if heading else found[0]


def _field(found: re.Match[str], language: Language) -> str:
    name = found[1].replace("-", "_")
    label = LABELS.get(name) or FIELDS.get(name)
    return f"“{label.of(language)}”" if label else found[0]


@cache
def _titles(language: Language) -> dict[str, str]:
    """Titles of pages by the names of commands."""
    site_map = import_module("stepscope.web.ui.site_map").site_map  # whose pages say what is worded here
    titles = {page.name: page.title.of(language) for page in site_map() if page.name not in ("timeline", "query")}
    return {**titles, "analyze": _OVERVIEW.of(language)}


@cache
def _headings(language: Language) -> dict[str, str]:
    """Headings of sections by the names of tables, and by the questions that they answer."""
    found: dict[str, str] = {}
    for page in PAGES:
        for section in page.sections:
            text = section.heading or section.key.replace("_", " ").capitalize()
            heading = filled(said(text, language), "step", language)
            found.setdefault(section.key, heading)
            found.setdefault(section.question, heading)
    return found
