"""Sentences in a terminal, wrapped between words, and those on standard error: what a call did besides answering."""

from __future__ import annotations

import os
import sys
import textwrap

WIDTH = 120
"""Longer lines of prose are hard to read, however wide the terminal is."""

NARROWEST = 40


def note(text: str) -> None:
    """Print a sentence, or lines, to standard error; in a terminal they are wrapped between words."""
    from stepscope.present import printable

    lines = printable(f"stepscope: {text}", keep="\n").split("\n")
    if width := _width():
        lines = [wrapped(line, width, len(line) - len(line.lstrip()) + 2) for line in lines]
    print("\n".join(lines), file=sys.stderr, flush=True)


def wrapped(line: str, width: int, indent: int) -> str:
    """A line in several of at most `width` cells (unless a word is longer), those after the first indented."""
    margin = " " * indent
    return textwrap.fill(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    """Cells of a line of the terminal; 0 where standard error is none."""
    try:
        if not sys.stderr.isatty():
            return 0
        columns = os.environ.get("COLUMNS", "")
        cells = int(columns) if columns.isdecimal() else os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0
    return max(min(cells, WIDTH), NARROWEST) if cells else 0
