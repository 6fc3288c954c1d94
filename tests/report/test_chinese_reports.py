"""Chinese reports: of every kind of recording, in every form, no sentence stays English."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("openpyxl")

import openpyxl

from stepscope.advice import RULES
from stepscope.analysis.registry import ANALYSES
from stepscope.compare import COMPARISONS
from stepscope.pages import PAGES
from stepscope.pages.chinese import WORDS
from stepscope.pages.job import PAGE
from stepscope.pages.shown_table import english_title
from stepscope.report.answers import answers
from stepscope.report.contents import Contents, contents
from stepscope.report.html import to_html
from stepscope.report.markdown_report import to_markdown
from stepscope.report.outline import MODULES
from stepscope.report.xlsx import write_workbook
from stepscope.run import Run, open_run
from tests.every_format import FORMATS
from tests.report.reports import slow_run

SENTENCE = re.compile(r"(?<![\w`/.:<-])(?:[A-Za-z][a-z']*[a-z][,;]? ){2,}[A-Za-z][a-z']+(?![\w`/:(<])")
"""Three English words in a row: more than a name."""

UNSEEN = {"script", "style", "template", "code"}
ASCII = {"{step}", "{steps}", "{Steps}"}
"""Titles that are filled with Chinese words."""


class Texts(HTMLParser):
    """The texts of a page that people see or hear."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "link", "input"):
            self._open.append(tag)
        self.found += [value for name, value in attrs if value and name in ("aria-label", "title", "data-filter")]

    def handle_endtag(self, tag: str) -> None:
        while self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not UNSEEN & {*self._open}:
            self.found.append(data.strip())


def of_html(found: Contents) -> list[str]:
    return Texts(to_html(found).decode()).found


def of_markdown(found: Contents) -> list[str]:
    return re.split(r" \| |\n|<[^>]+>", html.unescape(to_markdown(found).replace("\\", "")))


def of_workbook(found: Contents, directory: Path) -> Iterator[str]:
    write_workbook(found, directory / "report.xlsx")
    book = openpyxl.load_workbook(directory / "report.xlsx", read_only=True)
    for sheet in book:
        yield sheet.title
        yield from (cell for row in sheet.iter_rows(values_only=True) for cell in row if isinstance(cell, str))


def english(texts: list[str]) -> list[str]:
    """The texts with English sentences; names between backticks are none."""
    return sorted({text for text in texts if SENTENCE.search(re.sub(r"`[^`]*`", "", text))})


def report_of(run: Run, bench: Run | None = None) -> Contents:
    return contents(run, answers(run, strict=True), "zh", bench=bench, figures=True)


@pytest.mark.parametrize("form", FORMATS)
def test_no_sentence_of_any_form_stays_english(tmp_path: Path, form: str) -> None:
    pytest.importorskip("plotly")
    (tmp_path / "run").mkdir()
    FORMATS[form](tmp_path / "run")
    found = report_of(open_run(tmp_path / "run"))

    texts = [*of_html(found), *of_markdown(found), *of_workbook(found, tmp_path)]

    assert english(texts) == []


def test_no_sentence_about_slow_ranks_and_two_runs_stays_english(tmp_path: Path) -> None:
    run = slow_run()

    texts = [
        *of_html(report_of(run)),
        *of_html(report_of(run, bench=slow_run())),
        *of_workbook(report_of(run), tmp_path),
    ]

    assert english(texts) == []


def questions() -> set[str]:
    """All questions whose answers a report may show."""
    pages = {page.name: page for page in (PAGE, *PAGES)}
    named = [name.partition("/") for module in MODULES for part in module.parts for name in part.tables]
    shown = {pages[page].section_named(key).question if page else key for page, _, key in named}
    return {*shown, *(name for rule in RULES.values() for name in rule.shows), *COMPARISONS}


@pytest.mark.parametrize("question", sorted(questions()))
def test_every_column_that_a_report_may_show_has_a_chinese_title_and_meaning(question: str) -> None:
    """Add them to `pages/chinese/`."""
    columns = (ANALYSES.get(question) or COMPARISONS[question]).columns

    assert [title for one in columns if (title := english_title(one)) not in {*WORDS, *ASCII}] == []
    assert [one.doc for one in columns if one.doc and one.doc not in WORDS] == []
