"""Tables about two sides of one run with the names of these sides, in place of `base` and `new`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from stepscope.compare import BASE, NEW, Pair, SideName
from stepscope.pages.shown_table import columns_of, filled
from stepscope.pages.words import said
from stepscope.present import Language
from stepscope.tables.base import Column

_PHRASES: Mapping[Language, Mapping[str, str]] = {
    "en": {"the base's": "{base}'s", "the base": "{base}", "the new side": "{new}"},
    "zh": {"基准侧": "{base} ", "新的一侧": "{new} "},
}
"""What meanings of columns call the sides."""

_ONLY: Mapping[Language, str] = {"en": "only {}", "zh": "仅 {}"}

_FIGURES_ZH = {"own": "自有", "call": "单次", "rate": "带宽", "host": "主机", "path": "路径"}
"""What titles have behind the side, where it is no title of its own."""

_ROLES_ZH = {"typical": "典型", "slow": "慢"}

_NOUNS = {"ranks": "rank", "step": "步", "steps": "步", "iteration": "迭代", "iterations": "迭代"}


def with_side_names(
    question: str, columns: Sequence[Column], rows: pl.DataFrame, pair: Pair, language: Language
) -> tuple[list[Column], pl.DataFrame]:
    """Columns and rows of a comparison with the names of the sides in titles, meanings and values; as they are if the
    sides are called base and new.

    Args:
        question: The comparison.
        columns: With titles in the language.
        rows: With values in English.
        pair: The sides.
        language: That of the titles.
    """
    base, new = pair.names
    if new.label == NEW.label:
        return list(columns), rows
    names = {BASE.label: base, NEW.label: new}
    changed = []
    if "verdict" in rows.columns:
        only = {"added": new.label, "removed": base.label}
        only = {word: _ONLY[language].format(said_label(label, language)) for word, label in only.items()}
        changed.append(pl.col("verdict").replace(only))
    if "side" in rows.columns:
        changed.append(pl.col("side").replace({key: whole_name(name, language) for key, name in names.items()}))
    english = {column.name: column.title for column in columns_of(question, rows, pair.per)}
    found = [_named(column, english.get(column.name, ""), names, pair, language) for column in columns]
    return found, rows.with_columns(changed)


def whole_name(name: SideName, language: Language) -> str:
    """The name of a side with its role."""
    label = said_label(name.label, language)
    if not name.role:
        return label
    return f"{label} ({name.role})" if language == "en" else f"{label}（{_ROLES_ZH.get(name.role, name.role)}）"


def said_label(label: str, language: Language) -> str:
    """The label of a side in a language."""
    return label if language == "en" else " ".join(_NOUNS.get(word, word) for word in label.split(" "))


def _named(column: Column, english: str, names: Mapping[str, SideName], pair: Pair, language: Language) -> Column:
    """A column about one side with the side's name in its title, and meanings with the names of both."""
    labels = {key: said_label(name.label, language) for key, name in names.items()}
    doc = column.doc
    for phrase, place in _PHRASES[language].items():
        doc = doc.replace(phrase, place.format(**labels))
    side, _, rest = english.partition(" ")
    if side not in names:
        return replace(column, doc=doc)
    figure = _FIGURES_ZH.get(rest) if language == "zh" else None
    title = f"{labels[side]} {figure or filled(said(rest, language), pair.per, language)}"
    return replace(column, title=title if rest else whole_name(names[side], language), doc=doc)
