"""Columns that hold one of a few words, in the language of the reader; machines get the words themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

import polars as pl

from stepscope.present import Language
from stepscope.tables.base import Column

CODED = ("cause", "kind", "part", "pattern")
"""Columns of a few words that not all answers declare."""

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
        is_word = found.dtype == pl.String and (column.values or column.name in CODED)
        if is_word or found.dtype == pl.Boolean:
            known = {**chinese.VALUES, **chinese.OF_COLUMNS.get(column.name, {})}
            texts = [None if value is None else _said(str(value), known) for value in found.to_list()]
            changed.append(pl.Series(column.name, texts, dtype=pl.String))
    return rows.with_columns(changed)


def _said(value: str, known: Mapping[str, str]) -> str:
    part = value.removeprefix(WITHIN)
    text = known.get(part) or known.get(part.lower(), part)
    return WITHIN + text if part != value else text
