"""The tables to show of a page's answers, as plain data: headings, declared columns, rows, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.advice.finding import Per
from stepscope.analysis.parameters import CHOSEN
from stepscope.compare import Pair
from stepscope.pages.answering import Answered, notes_of, per_of
from stepscope.pages.base import Derived, Section, View
from stepscope.pages.coded_values import in_words
from stepscope.pages.listing import Part, listed, paged
from stepscope.pages.relative_times import since_start
from stepscope.pages.short_names import readable
from stepscope.pages.shown_table import ShownTable, columns_of, declared_of, filled
from stepscope.pages.side_titles import with_side_names
from stepscope.pages.sources import source_of
from stepscope.pages.words import added, said
from stepscope.present import Language, plural
from stepscope.run import Run
from stepscope.selection import describe_ranges

COUNTED = ("step", "steps", "steps_late", "of_steps", "longest_step")
"""Columns that mean nothing if the recording as a whole stands for the steps."""


@dataclass(frozen=True)
class ShownSection:
    """An answer to show: its tables, and sentences about it."""

    tables: Sequence[ShownTable]
    sentences: Sequence[str]


def shown_sections(
    answered: Answered, *, every_column: bool = False, whole_names: bool = False, language: Language = "en"
) -> Iterator[ShownSection]:
    """The answers of a page as people see them.

    Args:
        answered: The answers.
        every_column: Also columns that are shown only on demand.
        whole_names: Names of kernels with their template arguments and parameters.
        language: Language of titles and of what columns mean.

    Raises:
        StepscopeError: If the request names a column or page that the table does not have.
    """
    per = per_of(answered.run)
    tables, said = answered.tables, set[str]()
    for section, answer in answered.found:
        other = tables.get(section.unless)
        if isinstance(answer, str) or not section.heading or (other is not None and not other.is_empty()):
            continue
        shown = _Showing(answered, section, answer, per, every_column, whole_names, language).section()
        if answered.page.scope == "pair":  # what words of several tables mean is said once
            shown = replace(shown, sentences=[sentence for sentence in shown.sentences if sentence not in said])
            said.update(shown.sentences)
        yield shown


def shown_answer(run: Run, section: Section, answer: pl.DataFrame) -> ShownTable:
    """All of an answer as one table under the section's name."""
    per = per_of(run)
    heading = "{Steps}" if section.key == "steps" else section.key.replace("_", " ").capitalize()
    rows = _counted(answer, per)
    return ShownTable(filled(heading, per), columns_of(section.question, rows, per), rows)


def _counted(rows: pl.DataFrame, per: Per) -> pl.DataFrame:
    """The rows with what counts steps left out if there are none, and steps by the name that they have here."""
    if per == "recording":
        rows = rows.drop(COUNTED, strict=False)
    if "phase" in rows.columns:
        rows = rows.with_columns(pl.col("phase").replace("step", filled("{step}", per)))
    return rows


@dataclass(frozen=True)
class _Showing:
    """One section on its way to the screen."""

    answered: Answered
    of: Section
    answer: pl.DataFrame
    per: Per
    every_column: bool
    whole_names: bool = False
    language: Language = "en"

    def section(self) -> ShownSection:
        derived = self.of.derived(self.answered.run, self.answer) if self.of.derived else Derived(self.answer)
        listing = self.answered.request.listing
        titles = self._titles(derived) if listing.is_choosing else {}  # of many tables, each takes a while
        found = listed(derived.rows, replace(listing, top=None, page=1), titles).rows
        split = [(view, view.rows_of(found)) for view in self._views(found)]
        longest = max(rows.height for _, rows in split)
        tables = []
        for view, rows in split:
            part = paged(rows, listing.top or self.of.rows, listing.page, longest)
            if part.rows.height or not longest:
                tables.append(self._table(view, part, derived))
        sentences = self.of.sentences(self.answer) if self.of.sentences else ()
        if self.answered.page.scope != "rank":
            chosen = self.answered.request.table == self.of.key
            tables = [table for table in tables if chosen or not table.rows.is_empty()]
        notes = notes_of(self.answered.run, self.of, self.answer)
        return ShownSection(tables, [*(filled(sentence, self.per) for sentence in sentences), *notes])

    def _titles(self, derived: Derived) -> dict[str, str]:
        found = columns_of(self.of.question, derived.rows, self.per, derived.columns)
        return {column.name: column.title for column in found}

    def _span(self) -> dict[str, int | None]:
        """Start and end of the recording."""
        facts = [rank.facts for rank in self.answered.run.ranks]
        starts, ends = ([fact[name] for fact in facts if fact.get(name) is not None] for name in ("start_ns", "end_ns"))
        return {"start_ns": min(starts, default=None), "end_ns": max(ends, default=None)}

    def _views(self, rows: pl.DataFrame) -> Sequence[View]:
        """The tables that people see of it: those of which something is known."""
        views = [
            view
            for view in self.of.views
            if (not view.needs or any(rows[name].count() for name in view.needs if name in rows.columns))
            and (view.split is None or view.split in rows["split"])
        ]
        return views or [View(self._own_heading())]

    def _table(self, view: View, part: Part, derived: Derived) -> ShownTable:
        own = derived.columns
        moments = [column.name for column in declared_of(self.of.question, part.rows, own) if column.moment]
        rows, since = since_start(part.rows, derived.rows, moments, self._span())
        rows = self._shown(rows, view)
        if not self.whole_names:
            rows = readable(rows)
        columns = columns_of(self.of.question, rows, self.per, own, self.language)
        if isinstance(self.answered.run, Pair):
            columns, rows = with_side_names(self.of.question, columns, rows, self.answered.run, self.language)
        rows = in_words(rows, columns, self.language)
        more = derived.more + (since if any(column.moment for column in columns) else "")
        heading = filled(view.heading, self.per) + source_of(part.rows, view.by)
        if self.answered.page.scope != "rank":
            heading += f": {rows.height} of {part.found}{more}" if rows.height < part.found else more
            heading += "" if rows.height or self.of.sentences else ": none"
        else:
            heading += f"{self._of_steps()}{more}: {self._which(part, rows.height)}"
        bar, drawn = (name if name in rows.columns else "" for name in (self.of.bar, self.of.drawn))
        named_by = self.of.named_by if self.of.named_by in rows.columns else ""
        name = filled(said(view.heading, self.language), self.per, self.language)
        by = source_of(part.rows, view.by)
        return ShownTable(
            heading, columns, rows, bar, drawn, named_by, name, added(by + more, self.language), part.found
        )

    def _shown(self, rows: pl.DataFrame, view: View) -> pl.DataFrame:
        """The columns that people see, of which something is known; lists as texts."""
        left_out = {*view.without, *(() if self.every_column else self.of.hidden)}
        if self.answered.page.scope == "rank":
            left_out.add("rank")
        names = (n for n in rows.columns if n not in left_out and (not view.shows or n in view.shows))
        known = _counted(rows.select(name for name in names if rows[name].count()), self.per)
        lists = [name for name, dtype in known.schema.items() if isinstance(dtype, pl.List)]
        if not lists:
            return known
        return known.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(", ") for name in lists)

    def _own_heading(self) -> str:
        own = {option.name for option in self.answered.page.options}
        options = self.answered.request.options
        chosen = any(options.get(name) is not None for name in self.of.takes if name in own)
        return self.of.chosen_heading if chosen and self.of.chosen_heading else self.of.heading

    def _of_steps(self) -> str:
        """Of which steps the answer is, if some were chosen: of all, if it is not known which step a row is of."""
        request, answer = self.answered.request, self.answer
        takes = [option for option, argument in self.of.takes.items() if argument == CHOSEN]
        if request.steps is None and all(request.options.get(option) is None for option in takes):
            return ""
        numbers = [answer[name] for name in ("step", "steps") if name in answer.columns and answer.height]
        of_graph = answer.height > 0 and "node" in answer.columns and not answer["node"].has_nulls()
        unknown = of_graph or any(not column.count() for column in numbers)
        if unknown or (self.of.every_step and not takes):
            return filled("{all_steps}", self.per)
        return "" if self.of.every_step or self.per == "recording" else f", {self.per} {request.steps}"

    def _which(self, part: Part, height: int) -> str:
        """Which rows these are, e.g. `rows 21-40 of 57`."""
        if part.rows.height == part.found:
            return plural(height, "row")
        first = (part.page - 1) * (self.answered.request.listing.top or self.of.rows) + 1
        last = first + part.rows.height - 1
        return f"row{'s' * (last > first)} {describe_ranges([(first, last)])} of {part.found}"
