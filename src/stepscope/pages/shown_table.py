"""A table to show, as plain data that any surface lays out: its heading, its columns with titles, its rows.

A job has steps, iterations that were found, or one recording. Headings, titles and sentences are written with a word in
braces for each place that differs, e.g. `{Steps} by phase`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.advice.finding import KINDS, Per
from stepscope.analysis.columns import SHARED
from stepscope.analysis.registry import ANALYSES
from stepscope.compare import COMPARISONS
from stepscope.present import title
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

_BRACES = re.compile(r"\{(\w+)\}")
_BY_KIND = {kind: {word: texts[place] for word, texts in _WORDS.items()} for place, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class ShownTable:
    """A table to show; moments count from the start that the heading names.

    Args:
        bar: Column whose values are shown as bars as well; empty if none.
        drawn: Column whose texts are made of blocks; empty if none.
        named_by: Column whose texts name the fractions of their row, with the unit; empty if none.
    """

    heading: str
    columns: Sequence[Column]
    rows: pl.DataFrame
    bar: str = ""
    drawn: str = ""
    named_by: str = ""


def undeclared(rows: pl.DataFrame, heading: str = "") -> ShownTable:
    """A table about whose columns nothing is declared: titles are their names, and all are equally important."""
    return ShownTable(heading, [Column(name, "string", "", title=title(name)) for name in rows.columns], rows)


def columns_of(question: str, rows: pl.DataFrame, per: Per = "step", own: Iterable[Column] = ()) -> list[Column]:
    """The columns of an answer, or of a table made of it, with titles for what the windows of the job are.

    A column that is neither the page's own nor declared by the analysis is the shared one of that name, if there is
    one.
    """
    asked = ANALYSES.get(question) or COMPARISONS.get(question)
    declared = {column.name: column for column in asked.columns} if asked else {}
    declared |= {column.name: column for column in own}
    found = []
    for name in rows.columns:
        column = declared.get(name) or SHARED.get(name) or Column(name, "string", "")
        found.append(replace(column, title=_title(column, per)))
    return found


def _title(column: Column, per: Per) -> str:
    if column.title:
        return filled(column.title, per)
    words = title(column.name).split(" ")
    return " ".join(filled(f"{{{word}}}", per) if word in ("step", "steps") else word for word in words)


def filled(text: str, per: Per) -> str:
    """A text with its words in braces filled in; other braces in it, e.g. those of an operator's name, stay.

    Examples:
        >>> filled("Operations of {a_step}", "iteration"), filled("{Steps} by phase", "recording")
        ('Operations of an iteration', 'Recording by phase')
    """
    words = _BY_KIND.get(per, _BY_KIND["step"])
    return _BRACES.sub(lambda found: words.get(found[1], found[0]), text)
