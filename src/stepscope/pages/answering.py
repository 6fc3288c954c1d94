"""Answering a page: which ranks and steps it is about, which of its questions are asked, and what the answers are.

The answers are tables, or plain data for programs: one object with all tables, or one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from polars import selectors

from stepscope.advice import finding
from stepscope.advice.finding import Per
from stepscope.compare import Pair
from stepscope.errors import StepscopeError, Unavailable
from stepscope.pages.base import BASE_CHOOSING, PLACES, Page, Section
from stepscope.pages.choosing import Choosing, ranks_of
from stepscope.pages.listing import Listing, Part, listed
from stepscope.pages.reasons import explain, explain_pair
from stepscope.pages.shown_table import columns_of, filled
from stepscope.present import listed as in_words
from stepscope.references import as_typed
from stepscope.run import Run
from stepscope.selection import Choice

Subject = Run | Pair
"""What a page is about."""


@dataclass(frozen=True)
class Request:
    """What a user chose on a page.

    Args:
        ranks: Of a page about one rank: its number, by default the lowest. Of a page about a job: its ranks.
        steps: The steps; all by default.
        table: Name of the only section to show.
        listing: Rows to show, and their order. A search, filter, order or page is about one table: the main one unless
            `table` names another.
        options: Values of the page's own options.
        main_only: Show only one table in any case.
    """

    ranks: Choice = None
    steps: Choice = None
    table: str | None = None
    listing: Listing = field(default_factory=Listing)
    options: Mapping[str, Any] = field(default_factory=dict)
    main_only: bool = False


@dataclass(frozen=True)
class Answered:
    """The answers of a page.

    Args:
        run: The ranks that it is about, with all their steps; of a page about a pair, the pair.
        found: The sections that were asked, each with its answer or the reason why there is none.
        notes: Sentences about what the choice of rows does not apply to.
    """

    page: Page
    request: Request
    run: Subject
    found: Sequence[tuple[Section, pl.DataFrame | str]]
    notes: Sequence[str] = ()

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The answers by question."""
        return {section.question: answer for section, answer in self.found if isinstance(answer, pl.DataFrame)}

    @property
    def unavailable(self) -> dict[str, str]:
        """Why a question has no answer, by question."""
        return {section.question: answer for section, answer in self.found if isinstance(answer, str)}

    @property
    def says_anything(self) -> bool:
        """Whether there is an answer: rows, a sentence, or that nothing of what it looks for was found.

        If some questions cannot be answered, empty answers to the others do not count.
        """
        frames = [(section, rows) for section, rows in self.found if isinstance(rows, pl.DataFrame)]
        if not self.unavailable or any(rows.height for _, rows in frames):
            return bool(frames)
        return any(section.sentences and any(True for _ in section.sentences(rows)) for section, rows in frames)

    @property
    def not_asked(self) -> list[str]:
        """Names of the page's sections that were not asked for, although they fit the options."""
        asked = {section.key for section, _ in self.found}
        fitting = [section.key for section in self.page.sections if section.is_asked(self.request.options)]
        return [key for key in fitting if key not in asked]


def answer(run: Subject, page: Page, request: Request | None = None) -> Answered:
    """Answer the questions of a page about a run, or about a pair if it compares.

    Raises:
        StepscopeError: If the request names a rank, step or table that there is not, or an option chooses nothing.
    """
    request = request or Request()
    sections = _asked(page, request)
    if isinstance(run, Pair) != (page.scope == "pair"):
        raise StepscopeError(f"page {page.name} is about {'two sides' if page.scope == 'pair' else 'one run'}")
    if isinstance(run, Pair):
        return _of_pair(run, page, request, sections)
    chosen = request.ranks
    if page.scope == "rank" and chosen is None:
        chosen = run.ranks[0].rank
    else:
        chosen = ranks_of(run, chosen, *(request.options.get(place.name) for place in PLACES))
    ranks = run if chosen is None else run.select(ranks=chosen)
    steps = ranks if request.steps is None else ranks.select(steps=request.steps)
    values = {"ranks": request.ranks, "step": request.steps, "steps": request.steps, **_given(page, request.options)}
    choosing = Choosing(page, values)

    def asked(section: Section, values: Mapping[str, Any] = values) -> pl.DataFrame | str:
        return _answer(ranks if section.every_step else steps, section, values)

    found = [(section, choosing.rows(section, asked(section))) for section in sections]
    choosing.check(found, lambda section: asked(section, choosing.without(values)))
    notes = [*choosing.notes(found), *_about_one_table(page, request, sections)]
    return Answered(page, request, ranks, found, notes)


def _of_pair(pair: Pair, page: Page, request: Request, sections: Sequence[Section]) -> Answered:
    of_base = {option.name: request.options.get(option.name) for option in BASE_CHOOSING}
    selected = pair.select(ranks=request.ranks, steps=request.steps, **of_base)
    values = _given(page, request.options)
    choosing = Choosing(page, values)
    found = [(section, choosing.rows(section, _answer(selected, section, values))) for section in sections]
    choosing.check(found, lambda section: _answer(selected, section, choosing.without(values)))
    notes = [*choosing.notes(found), *_about_one_table(page, request, sections)]
    return Answered(page, request, selected, found, notes)


def _about_one_table(page: Page, request: Request, asked: Sequence[Section]) -> list[str]:
    """That other tables are left out, as an option chooses rows of one."""
    others = [section.key for section in page.sections if section.is_asked(request.options) and section not in asked]
    if request.table is not None or request.main_only or not others:
        return []
    return [
        f"This is only {asked[0].key}, as rows are chosen of one table; of others: «--table» {in_words(others, 'or')}."
    ]


def _asked(page: Page, request: Request) -> Sequence[Section]:
    if request.table is not None:
        return [page.section_named(request.table)]
    sections = [section for section in page.sections if section.is_asked(request.options)]
    return sections[:1] if request.listing.is_choosing or request.main_only else sections


def _given(page: Page, values: Mapping[str, Any]) -> dict[str, Any]:
    """The page's own options that were given, as analyses get them."""
    checked = {option.name: option.checked(values.get(option.name)) for option in page.options}
    return {name: value for name, value in checked.items() if value is not None}


def taken(section: Section, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an analysis that were given."""
    found: dict[str, Any] = {}
    for option, argument in section.takes.items():
        if (value := values.get(option)) is not None:
            found.setdefault(argument, value)
    return found


def _answer(run: Subject, section: Section, values: Mapping[str, Any]) -> pl.DataFrame | str:
    try:
        found: pl.DataFrame = run.analyse(section.question, **taken(section, values))
    except Unavailable as reason:
        return explain_pair(run, reason) if isinstance(run, Pair) else explain(run, section.question, reason)
    return found


def document(answered: Answered, worded: Callable[[str], str] = as_typed) -> dict[str, Any]:
    """The tables by name, how many rows each has, why others are missing, and what could not be read.

    Tables are frames, as they may have millions of rows.

    Args:
        worded: Names the references in sentences (`stepscope.references`).
    """
    run = answered.run
    about: dict[str, Any] = _about(answered, worded)
    listing = answered.request.listing
    parts = {
        section.key: _listed(run, section, answer, listing)
        for section, answer in answered.found
        if isinstance(answer, pl.DataFrame)
    }
    notes = [note for section, answer in answered.found for note in notes_of(run, section, answer)]
    notes += answered.notes
    return {
        "run": run.name,
        **about,
        "rows": {key: part.found for key, part in parts.items()},
        "tables": {key: part.rows for key, part in parts.items()},
        "unavailable": {section.key: worded(answer) for section, answer in answered.found if isinstance(answer, str)},
        **({"notes": [worded(note) for note in dict.fromkeys(notes)]} if notes else {}),
        "issues": run.issues.filter(pl.col("severity") != "note").drop("rank"),
    }


def _about(answered: Answered, worded: Callable[[str], str]) -> dict[str, Any]:
    """Which ranks and steps the tables are about."""
    run, steps = answered.run, answered.request.steps
    if isinstance(run, Pair):
        sides = {
            key: {
                **{"run": side.name, "path": str(side.path), "ranks": [rank.rank for rank in side.ranks]},
                **{"label": name.label, "role": name.role or None},
            }
            for key, side, name in zip(("base", "new"), (run.base, run.new), run.names, strict=True)
        }
        return {**sides, "summary": [worded(text) for text in opening_of(answered)]}
    if answered.page.scope == "rank":
        return {"rank": run.ranks[0].rank, "step": steps}
    return {"ranks": [rank.rank for rank in run.ranks], "steps": steps}


def opening_of(answered: Answered) -> list[str]:
    """The sentences that come first on a page about a pair."""
    opening, run = answered.page.opening, answered.run
    if opening is None or not isinstance(run, Pair):
        return []
    return [filled(sentence, run.per) for sentence in opening(run)]


def notes_of(run: Subject, section: Section, found: pl.DataFrame | str) -> Sequence[str]:
    """What an answer rests on and cannot know."""
    if section.notes is None or isinstance(found, str):
        return []
    per = per_of(run)
    return [filled(note, per) for note in section.notes(run, found)]


def per_of(run: Subject) -> Per:
    """What the windows of a run are: steps, iterations that were found, or the whole recording."""
    if isinstance(run, Pair):
        return run.per
    per: Per = run.analyse(finding.per_of, otherwise="step")
    return per


def one_table(answered: Answered) -> pl.DataFrame:
    """The first table; `rank` is one of its columns."""
    tables = ((section, answer) for section, answer in answered.found if isinstance(answer, pl.DataFrame))
    return _listed(answered.run, *next(tables), answered.request.listing).rows


def _listed(run: Subject, section: Section, answer: pl.DataFrame, listing: Listing) -> Part:
    """The rows of an answer that were looked for; columns may be named by their headings."""
    columns = columns_of(section.question, answer, per_of(run)) if listing.sort or listing.where else []
    return listed(answer, listing, {column.name: column.title for column in columns})


def plain_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, which has no NaN and no infinity."""
    floats = selectors.float()
    return frame.with_columns(pl.when(floats.is_finite()).then(floats)).to_dicts()
