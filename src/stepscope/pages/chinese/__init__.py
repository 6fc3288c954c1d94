"""The Chinese texts of pages and analyses, by the English ones: headings, reasons, titles of columns, what they mean."""

from __future__ import annotations

from stepscope.pages.chinese import (
    calls_and_hosts,
    communication,
    comparisons_and_evidence,
    compiling_and_buckets,
    device_work,
    general,
    memory_and_input,
    sides_and_reasons,
    summaries_and_slowdowns,
    web_meanings_of_layouts,
    web_meanings_of_steps,
    web_meanings_of_work,
    work,
)
from stepscope.pages.chinese.headings import ADDED, HEADINGS, REASONS
from stepscope.pages.chinese.titles import TITLES
from stepscope.pages.chinese.titles_of_evidence import HEADINGS as HEADINGS_OF_EVIDENCE
from stepscope.pages.chinese.titles_of_evidence import TITLES as TITLES_OF_EVIDENCE
from stepscope.pages.chinese.web_headings import HEADINGS as HEADINGS_OF_PAGES
from stepscope.pages.chinese.web_headings import OPTIONS
from stepscope.pages.chinese.web_titles import TITLES as TITLES_OF_PAGES

SUBJECTS = (general, communication, work, memory_and_input, comparisons_and_evidence, sides_and_reasons)
PAGES = (web_meanings_of_work, web_meanings_of_layouts, web_meanings_of_steps)
EVIDENCE = (summaries_and_slowdowns, device_work, calls_and_hosts, compiling_and_buckets)

PARTS = (
    *(HEADINGS, HEADINGS_OF_EVIDENCE, REASONS, ADDED, TITLES, TITLES_OF_EVIDENCE),
    *(HEADINGS_OF_PAGES, OPTIONS, TITLES_OF_PAGES),
    *(part.MEANINGS for part in (*SUBJECTS, *EVIDENCE, *PAGES)),
)

WORDS: dict[str, str] = {english: chinese for part in PARTS for english, chinese in part.items()}
