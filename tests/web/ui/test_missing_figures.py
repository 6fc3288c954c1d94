"""What stands in the place of a figure that the data of a run cannot give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui")

from page_contexts import HOSTILE, context_of, entry

from stepscope import figures
from stepscope.errors import Unavailable
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import rendered
from stepscope.web.ui.missing import RECORDED_AS, missing_figure
from stepscope.web.ui.site_map import page_named
from stepscope.web.ui.wording import worded


def of_page(page: str, *frameworks: str, language: Any = "en") -> Context:
    context = context_of(f"/runs/run/{page}", language=language)
    context.entry = entry("run", frameworks=frameworks)
    return context


@pytest.mark.parametrize(
    ("page", "framework", "language", "told"),
    [
        ("memory", "pytorch", "en", "profile_memory=True"),
        ("memory", "pytorch", "zh", "请记录内存"),
        ("input", "mindspore", "en", "data_process=True"),
        ("links", "pytorch", "en", "Only Ascend profilers record links"),
    ],
)
def test_it_says_how_that_is_recorded(page: str, framework: str, language: Any, told: str) -> None:
    html = str(missing_figure(of_page(page, framework, language=language), "memory", Unavailable(HOSTILE)))

    assert told in html
    assert ("Memory" if language == "en" else "内存") in html
    assert "<script" not in html and "<img" not in html


def test_pages_that_show_several_things_say_the_reason_only() -> None:
    html = str(missing_figure(of_page("host", "pytorch"), "memory", Unavailable("no samples")))

    assert html.count("<p>") == 1 and "no samples" in html


def test_pages_with_a_way_to_record_are_pages() -> None:
    assert all(page_named(name) for name in RECORDED_AS)


def test_a_missing_table_says_its_reason_without_more() -> None:
    html = str(rendered(context_of("/runs/run/host"), "table.html.j2", "missing", title="Samples", reason="none"))

    assert "Samples" in html and html.count("<p>") == 1


def _reasons() -> Iterator[str]:
    """What figures say when they cannot be drawn, as it is written, with a number for what is filled in."""
    for file in Path(figures.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Unavailable":
                match node.args[0]:
                    case ast.Constant(value=text):
                        yield str(text)
                    case ast.JoinedStr(values=parts):
                        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)


def test_reasons_of_figures_have_chinese_words() -> None:
    reasons = list(_reasons())

    assert len(reasons) > 20
    assert [text for text in reasons if not re.search("[\u4e00-\u9fff]", worded(text, "zh"))] == []
