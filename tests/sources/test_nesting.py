"""Ranges are nested by thread, whether they nest cleanly or overlap."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources import nesting
from stepscope.sources.nesting import nest

RANGE = st.tuples(st.integers(-20, 60), st.integers(0, 25), st.sampled_from(["a", "b", None]))


def frame(ranges: list[tuple[int, int, str | None]]) -> pl.DataFrame:
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.String}
    return pl.DataFrame(ranges, schema=schema, orient="row")


def test_children_are_taken_off_their_parent_only() -> None:
    ranges = frame([(0, 100, "a"), (10, 30, "a"), (15, 5, "a"), (50, 10, "a"), (20, 10, "b")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, 0, 1, 0, None]
    assert nested["depth"].to_list() == [0, 1, 2, 1, 0]
    assert nested["self_ns"].to_list() == [60, 25, 5, 10, 10]


def test_of_equal_starts_the_longer_is_outside_and_neighbours_do_not_nest() -> None:
    ranges = frame([(0, 5, "a"), (0, 10, "a"), (10, 3, "a")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [1, None, None]


def test_an_overhang_is_not_taken_off_the_parent() -> None:
    ranges = frame([(0, 10, "a"), (5, 10, "a")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, 0]
    assert nested["self_ns"].to_list() == [5, 10]


def test_no_ranges_give_no_rows() -> None:
    assert nest(frame([])).height == 0


def test_times_near_the_limits_of_int64_do_no_harm() -> None:
    ranges = frame([(-(2**61), 5, "a"), (2**61, 5, "b"), (2**61 + 1, 1, "b")])

    nested = nest(ranges)

    assert nested["parent"].to_list() == [None, None, 1]


@given(ranges=st.lists(RANGE, max_size=40), block_rows=st.integers(1, 50))
@settings(max_examples=200, deadline=None)
def test_nesting_is_that_of_a_simple_search(ranges: list[tuple[int, int, str | None]], block_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_BLOCK_ROWS", block_rows)

        nested = nest(frame(ranges))

    assert nested["parent"].to_list() == [simple_parent(ranges, row) for row in range(len(ranges))]
    durations = [duration for _, duration, _ in ranges]
    assert all(0 <= own <= total for own, total in zip(nested["self_ns"], durations, strict=True))
    for row, parent in enumerate(nested["parent"]):
        assert nested["depth"][row] == (0 if parent is None else nested["depth"][parent] + 1)


def simple_parent(ranges: list[tuple[int, int, str | None]], row: int) -> int | None:
    """The last range before `row`, in order of start and length, that is open when it starts and was not hidden."""
    order = sorted(range(len(ranges)), key=lambda i: (ranges[i][0], -ranges[i][1], i))
    stack: list[int] = []
    for i in order:
        if ranges[i][2] != ranges[row][2]:
            continue
        while stack and ranges[stack[-1]][0] + ranges[stack[-1]][1] <= ranges[i][0]:
            stack.pop()
        if i == row:
            return stack[-1] if stack else None
        stack.append(i)
    return None
