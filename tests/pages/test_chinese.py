"""The Chinese of headings, titles and meanings: of texts that exist, with the same words in braces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stepscope.pages as pages_of
from stepscope.analysis.columns import SHARED
from stepscope.analysis.registry import ANALYSES
from stepscope.compare import COMPARISONS
from stepscope.pages import PAGES
from stepscope.pages.base import CHOOSING
from stepscope.pages.chinese import PARTS, REASONS, WORDS
from stepscope.pages.chinese.headings import ADDED
from stepscope.pages.job import PAGE
from stepscope.pages.shown_table import english_title, filled, titled
from stepscope.pages.words import added, said
from stepscope.tables.base import Column

QUESTIONS = {**ANALYSES, **COMPARISONS}
COLUMNS = [*SHARED.values(), *(column for question in QUESTIONS.values() for column in question.columns)]
SECTIONS = [section for page in (PAGE, *PAGES) for section in page.sections]
OPTIONS = {option.help for page in PAGES for option in (*page.options, *CHOOSING[page.scope])}
HEADINGS = {section.heading for section in SECTIONS} | {view.heading for each in SECTIONS for view in each.views}


def test_each_text_is_declared_somewhere() -> None:
    own = {name.replace("_", " ").capitalize() for name in (*QUESTIONS, *(section.key for section in SECTIONS))}
    declared = {
        *HEADINGS,
        *REASONS,
        *ADDED,
        *own,
        *OPTIONS,
        *(text for column in COLUMNS for text in (english_title(column), column.doc)),
    }
    pages = "".join(file.read_text(encoding="utf-8") for file in Path(pages_of.__file__).parent.glob("*.py"))

    assert [text for text in sorted({*WORDS} - declared) if f'"{text}"' not in pages] == []


def test_no_text_is_translated_twice() -> None:
    assert sum(map(len, PARTS)) == len(WORDS)


def test_texts_are_chinese_where_they_are_words() -> None:
    plain = {
        "AI CPU",
        "{Steps}",
        "FLOPs",
        "MHz",
        "p",
        "p95",
        "rank",
        "ranks",
        "rank a",
        "rank b",
        "Kernels",
        "in {a_step}",
        "{step_time}",
    }

    assert [text for text, chinese in WORDS.items() if text not in plain and not re.search("[一-鿿]", chinese)] == []


@pytest.mark.parametrize("per", ["step", "iteration", "recording"])
def test_words_in_braces_are_filled_in(per: str) -> None:
    assert [text for text in WORDS if re.search(r"\{\w+\}", filled(said(text, "zh"), per, "zh"))] == []


def test_a_text_without_a_translation_stays_english() -> None:
    assert said("no such text", "zh") == "no such text"
    assert titled(Column("strange_ns", "int64", ""), "step", "zh") == "strange"
    assert titled(Column("cost_ratio", "float64", ""), "step", "zh") == "代价占比"


def test_what_a_heading_adds_is_chinese_as_well() -> None:
    assert added(", from the timeline, mean of 3 steps", "zh") == "，来自时间线，3 步平均"
    assert added(", all ranks", "en") == ", all ranks"
    assert added("", "zh") == ""


def test_a_report_of_a_small_job_has_no_english_headings_titles_and_meanings() -> None:
    """Lists what still needs a translation, if anything does."""
    columns = [column for name in ("breakdown", "slow_ranks", "kernel_totals") for column in ANALYSES[name].columns]
    texts = [text for column in columns for text in (english_title(column), column.doc)]

    assert [text for text in texts if text not in WORDS and not text.startswith("{")] == []


def test_pages_have_no_english_headings_titles_options_and_meanings() -> None:
    """Lists what still needs a translation, if anything does."""
    sections = [section for page in PAGES for section in page.sections]
    own = {section.heading or section.key.replace("_", " ").capitalize() for section in sections}
    shown = {column for section in sections for column in QUESTIONS[section.question].columns}
    texts = {*own, *HEADINGS, *OPTIONS, *(english_title(column) for column in (*shown, *SHARED.values()))}
    plain = {"", "cp", "dp", "ep", "pp", "tp", "stream", "{step}", "{steps}"}

    assert sorted(texts - {*WORDS} - plain) == []
    assert sorted({column.doc for column in (*shown, *SHARED.values())} - {*WORDS, ""}) == []


def test_what_a_parallel_layout_rests_on_has_words() -> None:
    from stepscope.analysis.layout.parallel_layout import OF_DIMENSIONS
    from stepscope.pages.chinese.values import VALUES

    coded = {value for column in OF_DIMENSIONS if column.name in ("kind", "by") for value in column.values}
    assert coded <= VALUES.keys()
