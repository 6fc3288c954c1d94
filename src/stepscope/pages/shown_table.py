"""A table to show, as plain data that any surface lays out: its heading, its columns with titles, its rows.

A job has steps, iterations that were found, or one recording. Headings, titles and sentences are written with a word in
braces for each place that differs, e.g. `{Steps} by phase`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from stepscope.advice.finding import KINDS, Per
from stepscope.analysis.columns import SHARED
from stepscope.analysis.registry import ANALYSES
from stepscope.compare import COMPARISONS
from stepscope.pages.words import said
from stepscope.present import Language, title
from stepscope.tables.base import Column

_WORDS: dict[str, tuple[str, str, str]] = {
    "step": ("step", "iteration", "step"),
    "steps": ("steps", "iterations", "steps"),
    "Steps": ("Steps", "Iterations", "Recording"),
    "a_step": ("a step", "an iteration", "the recording"),
    "the_step": ("the step", "the iteration", "the recording"),
    "The_step": ("The step", "The iteration", "The recording"),
    "the_median_step": ("the median step", "the median iteration", "the recording"),
    "the_steps": ("the steps", "the iterations", "the recording"),
    "by_step": ("by step", "by iteration", "in the recording"),
    "by_step_and": ("by step and", "by iteration and", "by"),
    "and_steps": (" and steps", " and iterations", ""),
    "in_most_steps": ("in most steps", "in most iterations", "in the recording"),
    "all_steps": (", all steps", ", all iterations", ""),
    "step_time": ("step time", "iteration time", "time"),
}
"""Word in braces to what it is for steps, iterations and a recording; nothing is counted in a recording, it is one."""

_WORDS_ZH: dict[str, tuple[str, str, str]] = {
    "step": ("步", "迭代", "步"),
    "steps": ("步数", "迭代数", "步数"),
    "Steps": ("各步", "各次迭代", "整段记录"),
    "a_step": ("每步", "每次迭代", "整段记录"),
    "the_step": ("该步", "该次迭代", "整段记录"),
    "the_median_step": ("中位步", "中位迭代", "整段记录"),
    "the_steps": ("各步", "各次迭代", "整段记录"),
    "by_step": ("按步", "按迭代", "整段记录"),
    "by_step_and": ("按步和", "按迭代和", "按"),
    "and_steps": ("与各步", "与各次迭代", ""),
    "in_most_steps": ("多数步中", "多数迭代中", "记录中"),
    "all_steps": ("，所有步", "，所有迭代", ""),
    "step_time": ("步时间", "迭代时间", "时间"),
}

NUMBER_OF_RANKS = "number of ranks"
"""What a title says where its language has no plural: how many, not which."""

_BRACES = re.compile(r"\{(\w+)\}")


def _by_kind(words: Mapping[str, tuple[str, str, str]]) -> Mapping[Per, Mapping[str, str]]:
    return {kind: {word: texts[place] for word, texts in words.items()} for place, kind in enumerate(KINDS)}


_BY_KIND: Mapping[Language, Mapping[Per, Mapping[str, str]]] = {"en": _by_kind(_WORDS), "zh": _by_kind(_WORDS_ZH)}


@dataclass(frozen=True)
class ShownTable:
    """A table to show; moments count from the start that the heading names.

    Args:
        bar: Column whose values are shown as bars as well; empty if none.
        drawn: Column whose texts are made of blocks; empty if none.
        named_by: Column whose texts name the fractions of their row, with the unit; empty if none.
        name: The heading without what it adds about these rows.
        more: What the heading adds, besides how many rows these are.
        found: How many rows there are; None if they are all here.
    """

    heading: str
    columns: Sequence[Column]
    rows: pl.DataFrame
    bar: str = ""
    drawn: str = ""
    named_by: str = ""
    name: str = ""
    more: str = ""
    found: int | None = None


def undeclared(rows: pl.DataFrame, heading: str = "") -> ShownTable:
    """A table about whose columns nothing is declared: titles are their names, and all are equally important."""
    return ShownTable(heading, [Column(name, "string", "", title=title(name)) for name in rows.columns], rows)


def columns_of(
    question: str, rows: pl.DataFrame, per: Per = "step", own: Iterable[Column] = (), language: Language = "en"
) -> list[Column]:
    """The columns of an answer, or of a table made of it, with titles for what the windows of the job are.

    A column that is neither the page's own nor declared by the analysis is the shared one of that name, if there is
    one.
    """
    return [_titled(column, per, language) for column in declared_of(question, rows, own)]


def declared_of(question: str, rows: pl.DataFrame, own: Iterable[Column] = ()) -> list[Column]:
    """The columns of an answer, or of a table made of it, as they are declared; see `columns_of`."""
    asked = ANALYSES.get(question) or COMPARISONS.get(question)
    declared = {column.name: column for column in asked.columns} if asked else {}
    owned = {column.name: column for column in own}
    found = []
    for name in rows.columns:
        known = declared.get(name) or SHARED.get(name) or Column(name, "string", "")
        column = owned.get(name, known)
        found.append(column if column.doc or not known.doc else replace(column, doc=known.doc))
    return found


@lru_cache(maxsize=4096)
def _titled(column: Column, per: Per, language: Language) -> Column:
    doc = column.doc if language == "en" else filled(said(column.doc, language), per, language)
    return replace(column, title=titled(column, per, language), doc=doc)


def titled(column: Column, per: Per, language: Language = "en") -> str:
    """The title of a column in one language, for what the windows of the job are."""
    english = english_title(column)
    if language != "en" and english == "ranks" and column.dtype.startswith("int"):
        english = NUMBER_OF_RANKS
    return filled(said(english, language), per, language)


def english_title(column: Column) -> str:
    """The title of a column, or else that which its name gives, with its words for steps in braces."""
    if column.title:
        return column.title
    words = title(column.name).split(" ")
    return " ".join(f"{{{word}}}" if word in ("step", "steps") else word for word in words)


def filled(text: str, per: Per, language: Language = "en") -> str:
    """A text with its words in braces filled in; other braces in it, e.g. those of an operator's name, stay.

    Examples:
        >>> filled("Operations of {a_step}", "iteration"), filled("{Steps} by phase", "recording")
        ('Operations of an iteration', 'Recording by phase')
    """
    words = _BY_KIND[language].get(per, _BY_KIND[language]["step"])
    return _BRACES.sub(lambda found: words.get(found[1], found[0]), text)
