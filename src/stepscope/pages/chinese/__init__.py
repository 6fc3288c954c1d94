"""The Chinese texts of pages and analyses, by the English ones: headings, reasons, titles of columns, what they mean."""

from __future__ import annotations

from stepscope.pages.chinese import communication, general, memory_and_input, work
from stepscope.pages.chinese.headings import HEADINGS, REASONS
from stepscope.pages.chinese.titles import TITLES

PARTS = (HEADINGS, REASONS, TITLES, *(part.MEANINGS for part in (general, communication, work, memory_and_input)))

WORDS: dict[str, str] = {english: chinese for part in PARTS for english, chinese in part.items()}
