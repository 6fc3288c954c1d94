"""Titles, cells and text for people."""

from __future__ import annotations

import pytest

from stepscope.analysis.job.time_by_rank import PARTS
from stepscope.cli.tables import CALL_COLUMNS
from stepscope.present import EXPENDABLE, EXPENDABLE_TEXTS, cell, is_expendable, listed, plural, printable, title


@pytest.mark.parametrize(
    "columns", [PARTS, CALL_COLUMNS, ("cost_ns", "cost_ratio"), ("bandwidth_bytes_per_s", "bandwidth_ratio")]
)
def test_no_two_columns_of_a_table_have_one_title(columns: tuple[str, ...]) -> None:
    titles = [title(column) for column in columns]

    assert len(set(titles)) == len(titles)


def test_a_type_goes_only_where_there_is_a_name_beside_it() -> None:
    assert is_expendable("type", ["unit", "type", "name"], is_text=True)
    assert not is_expendable("type", ["unit", "type", "count"], is_text=True)
    assert not is_expendable("name", ["unit", "type", "name"], is_text=True)
    assert is_expendable("count", ["type", "count"], is_text=False)
    assert len(set(EXPENDABLE)) == len(EXPENDABLE)
    assert set(EXPENDABLE_TEXTS) <= set(EXPENDABLE)


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
