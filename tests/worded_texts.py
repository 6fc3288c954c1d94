"""The texts of the rooms that word sentences for several surfaces, as they stand in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import stepscope
from stepscope.pages import PAGES
from stepscope.pages.base import BASE_CHOOSING, CHOOSING, LISTING
from stepscope.pages.job import PAGE as JOB

SOURCE = Path(stepscope.__file__).parent


WORDED = ("pages", "analysis", "compare", "advice", "timeline")
"""Rooms whose sentences several surfaces show."""

OPTIONS = {
    option.on_command_line
    for option in (
        *LISTING,
        *BASE_CHOOSING,
        *(each for options in CHOOSING.values() for each in options),
        *(option for page in PAGES for option in page.options),
    )
} | {"--table", "--json", "--graphs"}

TABLES = {name for page in (JOB, *PAGES) for section in page.sections for name in (section.key, section.question)}

COMMANDS = {page.name for page in (JOB, *PAGES)}

_MAY_NAME = re.compile("--[a-z]|stepscope |«")


@cache
def texts() -> Sequence[tuple[str, str]]:
    """The texts that may name such things, in both languages, each with its file; docstrings are none."""
    found = []
    for file in sorted(file for room in WORDED for file in (SOURCE / room).rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        if _MAY_NAME.search(code):
            found += [(file.relative_to(SOURCE).as_posix(), text) for text in _texts(ast.parse(code))]
    return [(file, text) for file, text in found if _MAY_NAME.search(text)]


def _texts(tree: ast.Module) -> Iterator[str]:
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out.update(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value
