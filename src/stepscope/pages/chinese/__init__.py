"""The Chinese texts of pages and analyses, by the English ones: headings, reasons, titles of columns, what they mean."""

from __future__ import annotations

from stepscope.pages.chinese import (
    communication,
    comparisons_and_evidence,
    general,
    memory_and_input,
    sides_and_reasons,
    work,
)
from stepscope.pages.chinese.headings import ADDED, HEADINGS, REASONS
from stepscope.pages.chinese.titles import TITLES

SUBJECTS = (general, communication, work, memory_and_input, comparisons_and_evidence, sides_and_reasons)

PARTS = (HEADINGS, REASONS, ADDED, TITLES, *(part.MEANINGS for part in SUBJECTS))

WORDS: dict[str, str] = {english: chinese for part in PARTS for english, chinese in part.items()}
