"""The Chinese for what pages and analyses declare in English: headings, titles of columns, what columns mean."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import import_module

from stepscope.present import Language
from stepscope.references import as_typed


def said(text: str, language: Language) -> str:
    """A declared English text in a language; a text without a translation stays English."""
    return text if language == "en" else chinese().get(text, text)


def sentence(text: str, language: Language) -> str:
    """A sentence about an answer, or why there is none, in a language; one of an unknown form stays English."""
    return as_typed(marked_sentence(text, language))


def marked_sentence(text: str, language: Language) -> str:
    """The same with its references marked, for a surface that names them in other words."""
    if language == "en":
        return text
    known = import_module("stepscope.pages.chinese.sentences").in_chinese(text)
    return chinese().get(text) or known or text


@functools.cache
def chinese() -> Mapping[str, str]:
    """The Chinese texts by the English ones; loaded when the first one is asked for."""
    words: Mapping[str, str] = import_module("stepscope.pages.chinese").WORDS
    return words


def added(text: str, language: Language) -> str:
    """What a heading adds about its rows, in a language: phrases, each after a comma."""
    if language == "en" or not text:
        return text
    return "".join(f"，{_phrase(phrase)}" for phrase in text.removeprefix(", ").split(", "))


def _phrase(text: str) -> str:
    counted = _MEAN.fullmatch(text)
    if counted is None:
        return said(text, "zh")
    count, unit, some, without = counted.groups()
    noun = "次迭代" if unit == "iteration" else "步"
    return f"{'有算子记录的 ' * bool(some)}{count} {noun}平均" + (f"（不含第 {without} {noun}）" if without else "")


_MEAN = re.compile(r"mean of (\d+) (step|iteration)s?( with operators)?(?: without (?:step|iteration) (\d+))?")
