"""Columns that hold one of a few words, in the language of the reader; machines get the words themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module

import polars as pl

from stepscope.present import Language
from stepscope.tables.base import Column

CODED = ("about", "advice", "cause", "kind", "part", "pattern", "phase")
"""Columns of a few words that not all answers declare."""

TYPED = ("word",)
"""Columns of words that readers type as they are."""

LISTS = ("observations", "reason", "pattern")
"""Columns of phrases, of which a cell may list several."""

NAMED = {
    "during": r"^(unknown, in )",
    "host": r"^(unknown, in |[a-z]+(?: [a-z]+)?: )",
    "setting": r"^(framework version|framework|execution mode|ranks of the job|parallelism|kind of device|device|"
    r"AI cores|nominal clock \(MHz\)|communication backend|hosts|environment|format|profiler option)",
}
"""Columns whose texts begin with words before a name: what the host did in a range, and what sides differ in."""

WITHIN = "- "
"""What stands before a part of a part."""


def in_words(rows: pl.DataFrame, columns: Iterable[Column], language: Language) -> pl.DataFrame:
    """Rows whose columns of a few words, and of truths, have them in a language; other values stay."""
    if language == "en":
        return rows
    chinese = import_module("stepscope.pages.chinese.values")
    changed = []
    for column in columns:
        found = rows[column.name]
        if found.dtype == pl.List(pl.String) and column.name in LISTS:
            found = found.list.join(", ")
        if found.dtype == pl.String and column.name in NAMED:
            changed.append(_named(found, re.compile(NAMED[column.name]), chinese.BEFORE_NAMES))
            continue
        if column.name in TYPED:
            continue
        is_word = found.dtype == pl.String and (column.values or column.name in (*CODED, *LISTS))
        if is_word or found.dtype == pl.Boolean:
            known = {**chinese.VALUES, **chinese.PHRASES, **chinese.OF_COLUMNS.get(column.name, {})}
            texts = [None if value is None else _said(str(value), known) for value in found.to_list()]
            changed.append(pl.Series(column.name, texts, dtype=pl.String))
    return rows.with_columns(changed)


def _named(values: pl.Series, before: re.Pattern[str], known: Mapping[str, str]) -> pl.Series:
    """Texts with the words before a name in Chinese, if they are known."""

    def text(value: str) -> str:
        return before.sub(lambda found: known.get(found[1].strip(), found[1]) + " " * found[1].endswith(" "), value)

    return pl.Series(
        values.name, [None if value is None else text(value) for value in values.to_list()], dtype=pl.String
    )


def _listed(value: str, known: Mapping[str, str]) -> str:
    """The phrases of a cell, if they are all known."""
    phrases = value.split(", ")
    return "、".join(known[phrase] for phrase in phrases) if all(phrase in known for phrase in phrases) else value


def _said(value: str, known: Mapping[str, str]) -> str:
    part = value.removeprefix(WITHIN)
    text = known.get(part) or known.get(part.lower()) or _listed(part, known)
    return WITHIN + text if part != value else text
