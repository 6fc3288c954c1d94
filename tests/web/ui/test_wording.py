"""Sentences of pages name fields, tables and pages, not options of the command line."""

from __future__ import annotations

import pytest

from stepscope.pages import PAGES
from stepscope.pages.base import CHOOSING
from stepscope.web.ui.wording import in_words_of_pages


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("To see only one: --filter \"unit = 'X'\".", "To see only one: “Condition” \"unit = 'X'\"."),
        (
            "该设备的峰值未知；用 --peak-tflops 给出后可显示占比。",
            "该设备的峰值未知；用 “峰值（TFLOP/s）” 给出后可显示占比。",
        ),
        ("`stepscope memory` lists all.", "“Memory” lists all."),
        ("`stepscope memory` 列出全部。", "“内存” 列出全部。"),
        ("Compare them (`stepscope ops --step`).", "Compare them (“Operators”, “Step”)."),
        ("3 of 5 are 0; --json has them.", "3 of 5 are 0; the downloaded JSON has them."),
        ("record with `--stacks` (with_stack=True)", "record with `stepscope record --stacks` (with_stack=True)"),
        ("see `stepscope analyze --table arrival`", "see `stepscope analyze --table arrival`"),
        ("Turn off Megatron's `--overlap-grad-reduce`", "Turn off Megatron's `--overlap-grad-reduce`"),
        ("Nothing -- really", "Nothing -- really"),
    ],
)
def test_sentences_name_what_the_pages_have(typed: str, shown: str) -> None:
    assert in_words_of_pages(typed) == shown


def test_every_option_of_a_page_has_a_name_there() -> None:
    flags = {
        f"--{option.name.replace('_', '-')}" for page in PAGES for option in (*page.options, *CHOOSING[page.scope])
    }

    assert sorted(flag for flag in flags if in_words_of_pages(f"{flag} 1: none") == f"{flag} 1: none") == []


def test_what_a_recording_is_called_stays_escaped() -> None:
    from stepscope.web.ui.html import _said

    assert str(_said("<b> --ranks")) == "&lt;b&gt; “Ranks”"
