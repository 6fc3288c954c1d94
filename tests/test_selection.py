"""Choosing ranks and steps."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    ("one", "other", "both"), [("4-5", "5-8", "5"), ("2-", "0,3-4,9-", "3-4,9-"), ("1,3", "2", "")]
)
def test_numbers_that_two_selections_choose(one: str, other: str, both: str) -> None:
    first, second = parse_selection(one, "steps"), parse_selection(other, "steps")

    assert first is not None
    assert second is not None
    assert str(first & second) == str(second & first) == both


@pytest.mark.parametrize("chosen", [1.5, ["1"], [None], object()])
def test_what_is_no_number_is_refused(chosen: Any) -> None:
    with pytest.raises(StepscopeError, match=r"steps: .* is not a whole number. Choose them like"):
        parse_selection(chosen, "steps")


def test_numbers_of_numpy_choose_too() -> None:
    numbers = pytest.importorskip("numpy").array([3, 1, 2])

    assert str(parse_selection(numbers[0], "steps")) == "3"
    assert str(parse_selection(numbers, "steps")) == "1-3"


def test_numbers_are_described_as_ranges() -> None:
    assert describe_numbers([5, 1, 2, 3, 9, 10]) == "1-3,5,9-10"
    assert str(parse_selection([4, 2, 3], "ranks")) == "2-4"
