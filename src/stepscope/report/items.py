"""The tables of a report: asked once, shown as their page declares it, and whole for a workbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice import worded
from stepscope.advice.finding import platform_of
from stepscope.analysis.registry import ANALYSES
from stepscope.compare import Pair
from stepscope.errors import Unavailable
from stepscope.pages import PAGES
from stepscope.pages.answering import Answered, Request, Subject, per_of
from stepscope.pages.base import Page, Section
from stepscope.pages.job import PAGE
from stepscope.pages.listing import Listing
from stepscope.pages.reasons import explain
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable, columns_of, filled
from stepscope.pages.side_titles import with_side_names
from stepscope.pages.words import said, sentence
from stepscope.report.facts import Fact
from stepscope.report.findings import time_range
from stepscope.report.report_words import WORDS
from stepscope.selection import describe_numbers

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.advice.messages import Words
    from stepscope.present import Language
    from stepscope.report.answers import Answers
    from stepscope.run import Run
    from stepscope.tables.base import Column

SHOWN_ROWS = 100
"""Rows of a table that a page shows; the rest is in the workbook."""

PLACES = ("ranks", "links", "steps", "operators")


@dataclass(frozen=True)
class Item:
    """An answer in a report.

    Args:
        key: Its name, unique.
        heading: Its heading.
        question: The analysis that answered.
        tables: The tables to show, with the first rows of each.
        notes: Sentences about it.
        rows: The whole answer.
        columns: Its columns.
    """

    key: str
    heading: str
    question: str
    tables: Sequence[ShownTable]
    notes: Sequence[str]
    rows: pl.DataFrame
    columns: Sequence[Column]


@dataclass(frozen=True)
class Absent:
    """An answer that a run does not give, and why."""

    heading: str
    reason: str


Asked = Item | Absent


class Items:
    """All answers of a report about a run; each question is asked once.

    Args:
        language: Language of headings, titles and of what columns mean.
        marked: Leave the marks of references in what findings say (`stepscope.references`).
        whole: Show the whole answers of which findings have a part as evidence as well.
    """

    def __init__(
        self, run: Run, answers: Answers, language: Language, *, marked: bool = False, whole: bool = True
    ) -> None:
        self.run, self._answers, self.language, self._marked, self._whole = run, answers, language, marked, whole
        self._per = per_of(run)
        self.platform = platform_of(run.table("ranks") if run.has("ranks") else None)
        self._found: dict[str, Asked | None] = {}

    @property
    def all(self) -> Sequence[Item]:
        """Those that have rows, each question once, in the order in which they were asked."""
        items = {one.question: one for one in self._found.values() if isinstance(one, Item) and one.rows.height}
        return list(items.values())

    def asked(self, name: str) -> Asked | None:
        """The answer that a section of a page shows, as `page/section`; None if there is no such question."""
        if name not in self._found:
            self._found[name] = self._ask(name)
        return self._found[name]

    def evidence(self, question: str, finding: Finding, rows: int) -> Item | None:
        """The first rows of an answer that are about a finding's ranks; None if there are none."""
        if self._whole:
            self.asked(f"/{question}")
        page, section = _section(f"/{question}")
        try:
            whole = self._rows(page, section)
        except Unavailable:
            return None
        if whole is None:
            return None
        found = ANALYSES[question].of_ranks(whole, finding.ranks) if finding.ranks else whole
        return self._item(page, section, found, rows) if found.height else None

    def of(self, answered: Answered) -> list[Asked]:
        """What a page answers about a pair of runs."""
        page, found = answered.page, list[Asked]()
        for section, rows in answered.found:
            if isinstance(rows, str):
                found.append(Absent(self.heading(section), rows))
            elif section.heading and rows.height:
                found.append(self._item(page, section, rows, SHOWN_ROWS, answered.run))
        self._found |= {f"{page.name}/{one.key}": one for one in found if isinstance(one, Item)}
        return found

    def worded(self, finding: Finding) -> Words:
        """The texts of a finding."""
        return worded(finding, self.language, marked=self._marked)

    def places(self, finding: Finding) -> Iterator[Fact]:
        """Where a finding is, in words."""
        if finding.ranks:
            yield self._fact("ranks", describe_numbers(finding.ranks))
        for name in PLACES[1:]:
            values = finding.where.get(name)
            if isinstance(values, list) and values:
                numbers = name == "steps" and all(isinstance(value, int) for value in values)
                yield self._fact(name, describe_numbers(values) if numbers else ", ".join(map(_plain, values)))
        if found := self._answers.timelines.at(finding):
            yield self._fact("timeline", found.words(self.language), copied=True)
        elif told := time_range(finding, self._answers.start_ns, self.language):
            yield self._fact("time_range", told)

    def _fact(self, name: str, text: str, *, copied: bool = False) -> Fact:
        return Fact(WORDS[name].of(self.language), text, copied)

    def _ask(self, name: str) -> Asked | None:
        page, section = _section(name)
        try:
            rows = self._rows(page, section)
        except Unavailable as reason:
            return Absent(self.heading(section), explain(self.run, section.question, reason))
        return None if rows is None else self._item(page, section, rows, SHOWN_ROWS)

    def _rows(self, page: Page, section: Section) -> pl.DataFrame | None:
        """The answer of a section; None if there is no such question.

        Raises:
            Unavailable: If the run has no answer.
        """
        if section.question not in ANALYSES:
            return None
        found = self._answers.tables.get(section.question) if page is PAGE else None
        return self.run.analyse(section.question) if found is None else found

    def _item(
        self, page: Page, section: Section, rows: pl.DataFrame, most: int, subject: Subject | None = None
    ) -> Item:
        request = Request(listing=Listing(top=most))
        of_all = page if page.scope == "pair" else replace(page, scope="job")
        answered = Answered(of_all, request, subject or self.run, [(section, rows)])
        shown = list(shown_sections(answered, language=self.language))
        tables = [table for one in shown for table in one.tables if table.rows.height]
        notes = [
            sentence(text, self.language) for text in dict.fromkeys(text for one in shown for text in one.sentences)
        ]
        columns = columns_of(section.question, rows, self._per, language=self.language)
        if isinstance(subject, Pair):
            columns, rows = with_side_names(section.question, columns, rows, subject, self.language)
        key = section.question.replace("_", "-")
        return Item(key, self.heading(section), section.question, tables, notes, rows, columns)

    def heading(self, section: Section) -> str:
        """The heading of a section's answer."""
        text = section.heading or section.question.replace("_", " ").capitalize()
        return filled(said(text, self.language), self._per, self.language)


def _section(name: str) -> tuple[Page, Section]:
    """The page and section of a name; of a question that no page shows, one made up."""
    page_name, _, key = name.partition("/")
    if page_name:
        page = next(page for page in (PAGE, *PAGES) if page.name == page_name)
        return page, page.section_named(key)
    for page in (PAGE, *PAGES):
        for section in page.sections:
            if section.question == key and section.heading:
                return page, replace(section, derived=None, views=())
    section = Section(key, key.replace("_", " ").capitalize())
    return Page(key, "", [section]), section


def _plain(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
