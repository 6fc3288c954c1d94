"""Choosing ranks and steps."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import StepscopeError
from stepscope.selection import describe_numbers, parse_selection


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("0", [0]), ("0,3-5", [0, 3, 4, 5]), (" 3 - 5 , 0 ", [0, 3, 4, 5]), ("7-", [7, 8, 9]), ("2,2,1-3", [1, 2, 3])],
)
def test_text_chooses_numbers(text: str, chosen: list[int]) -> None:
    selection = parse_selection(text, "ranks")

    assert selection is not None
    assert [number for number in range(10) if number in selection] == chosen


@pytest.mark.parametrize("everything", [None, "all", ":", " ALL "])
def test_everything_is_no_selection(everything: str | None) -> None:
    assert parse_selection(everything, "ranks") is None


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1", "5-3", "1-2-3", "0x1", "1.5"])
def test_bad_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(StepscopeError, match=r"ranks .*Write"):
        parse_selection(text, "ranks")


def test_selection_filters_a_column_and_drops_unknown_numbers() -> None:
    selection = parse_selection("1,3-", "steps")
    frame = pl.DataFrame({"step": [0, 1, 2, 3, 4, None]})

    assert selection is not None
    assert frame.filter(selection.expression("step"))["step"].to_list() == [1, 3, 4]


def test_numbers_are_described_as_ranges() -> None:
    assert describe_numbers([5, 1, 2, 3, 9, 10]) == "1-3,5,9-10"
    assert str(parse_selection([4, 2, 3], "ranks")) == "2-4"
