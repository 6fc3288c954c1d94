"""What stands in the place of a figure that the data of a run cannot give."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nicegui")

from page_contexts import HOSTILE, context_of, entry

from stepscope.errors import Unavailable
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import rendered
from stepscope.web.ui.missing import RECORDED_AS, missing_figure
from stepscope.web.ui.site_map import page_named


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
