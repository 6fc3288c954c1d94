"""Titles, cells and text for people."""

from __future__ import annotations

import pytest

from stepscope.present import cell, listed, plural, printable, title


def test_a_ratio_that_rounds_to_zero_has_no_sign() -> None:
    assert [cell("x_ratio", value) for value in (-0.0004, -0.01, 0.0)] == ["0.0%", "-1.0%", "0.0%"]


def test_a_title_is_the_name_without_its_unit() -> None:
    assert [title(name) for name in ("cost_ns", "cost_ratio", "peak_bytes", "name")] == [
        "cost",
        "cost %",
        "peak",
        "name",
    ]


def test_what_is_no_number_has_no_unit() -> None:
    assert [cell(name, value) for name in ("at_ns", "part_ratio") for value in ("text", None)] == ["text", "-"] * 2


def test_a_factor_is_shown_as_times() -> None:
    assert cell("slowdown_factor", 2.5) == "2.50x"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("left\u202eright", "left\\u202eright"),
        ("byte\udcff", "byte\\xff"),
        ("\ud800", "\\ud800"),
        ("größe 数据", "größe 数据"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_meant_line_ends_stay() -> None:
    assert printable("a\n\tb", keep="\n") == "a\n\\tb"


def test_counts_agree_with_their_noun() -> None:
    assert [plural(n, "step") for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
    assert plural(2, "entry", "entries") == "2 entries"


def test_words_are_listed_as_in_a_sentence() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")] == ["a", "a and b", "a, b or c"]
