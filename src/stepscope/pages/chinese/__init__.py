"""The Chinese texts of pages and analyses, by the English ones."""

from __future__ import annotations

WORDS: dict[str, str] = {}
