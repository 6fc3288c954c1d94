"""Sentences in a terminal, wrapped between words, and those on standard error: what a call did besides answering."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable

WIDTH = 120
"""Longer lines of prose are hard to read, however wide the terminal is."""

NARROWEST = 40

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_UNBROKEN = rf" *[“（「『【《〈]*(?:[{_WIDE}]|[^ {_WIDE}]+)[”，。；：、\uff01\uff1f…）」』】》〉]*"
"""What stays on one line: a word, or a Chinese character, with the punctuation that opens and closes it."""


def note(text: str) -> None:
    """Print a sentence, or lines, to standard error; in a terminal they are wrapped between words."""
    from stepscope.present import printable
    from stepscope.references import as_typed

    lines = printable(f"stepscope: {as_typed(text)}", keep="\n").split("\n")
    if width := _width():
        lines = [wrapped(line, width, len(line) - len(line.lstrip()) + 2) for line in lines]
    print("\n".join(lines), file=sys.stderr, flush=True)


def note_warnings(warnings: Iterable[str]) -> None:
    """Print warnings about a run to standard error, for answers that have no place for them."""
    for warning in warnings:
        note(f"warning: {warning}")


def wrapped(line: str, width: int, indent: int) -> str:
    """A line in several of at most `width` cells (unless a word is longer), those after the first indented."""
    from rich.cells import cell_len

    lines = [""]
    for part in re.findall(_UNBROKEN, line):
        if lines[-1].strip() and cell_len(lines[-1] + part) > width:
            lines.append(" " * indent + part.lstrip())
        else:
            lines[-1] += part
    return "\n".join(lines)


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
