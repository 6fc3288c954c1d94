"""Options that pages share, each declared once."""

from __future__ import annotations

from stepscope.pages.base import Option

RANK = Option("rank", "integer", "Rank to show. Default: the lowest.", "R")
STEP = Option("step", "integer", "Show only this step (numbered as in the recording).", "N")
RANKS = Option("ranks", "text", "Show only these ranks, e.g. 0,3-5.", "LIST")
STEPS = Option("steps", "text", "Show only these steps, e.g. 10-12.", "LIST")
SEARCH = Option("search", "text", "Show rows that contain TEXT (case-insensitive).", "TEXT")
FILTER = Option(
    "where", "text", 'Show rows that meet this SQL condition, e.g. "total_ms > 5".', "EXPR", flag="--filter"
)
SORT = Option("sort", "text", "Sort by this column, e.g. total; use -total for the largest first.", "COL")
TOP = Option("top", "integer", "Rows per table. Default: 20 on a screen, all in JSON and CSV.", "N", minimum=1)
PAGE_NUMBER = Option("page", "integer", "Page number (with --top rows per page).", "N", default=1, minimum=1)

CHOOSING = {"rank": (RANK, STEP), "job": (RANKS, STEPS)}
"""Which ranks and steps a page is about, by its scope."""

LISTING = (SEARCH, FILTER, SORT, TOP, PAGE_NUMBER)
"""Which rows of a table are shown, and in which order."""
