"""Analyses know no file formats: what only a reader knows, it states in the tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepscope
from stepscope.sources.registry import SOURCES

PACKAGE = Path(stepscope.__file__).parent
FILES = sorted(file for room in ("analysis", "advice") for file in (PACKAGE / room).rglob("*.py"))
WORDS = {"operation", "flight", "recording", "runtime", "packed", "mindspore", "text", "trace"}
"""Words in names of formats that mean something else as well."""
SOURCE_NAMES = {source.name for source in SOURCES}
NAMES = (SOURCE_NAMES | {name.split("_")[0] for name in SOURCE_NAMES}) - WORDS
DATA_FORMAT = {"memory_breakdown.py"}
"""Files about the format of tensors."""


def texts(file: Path) -> Iterator[str]:
    """The texts in a file's code other than documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_analysis_or_rule_asks_which_format_was_read(file: Path) -> None:
    found = {text for text in texts(file) if text in NAMES}
    if file.name not in DATA_FORMAT:
        found |= {text for text in texts(file) if text == "format"}
    assert not found


def test_names_of_formats_are_found(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text('"""kineto"""\nis_part = pl.col("format").str.starts_with("ascend")\n', encoding="utf-8")

    assert {*texts(code)} == {"format", "ascend"}
    assert {"ascend", "kineto", "classic"} <= NAMES
